#include "report/plan/infeasibility_report.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(InfeasibilityReportTest, NamesTheLargestHoldersAndWhatWouldHelp) {
  using Kind = Infeasibility::Remedy::Kind;
  Plan plan = tiny_plan();
  plan.usable = plan.memory.peak / 2;
  Infeasibility answer;
  answer.smallest = &plan;
  answer.proven = true;
  answer.least = plan.memory.peak - 1024;
  answer.remedies = {{.kind = Kind::kFreeLayers, .peak = 10240, .step_change = 0.003},
                     {.kind = Kind::kTraining, .micro_batches = 2, .peak = 10240, .step_change = 0.012},
                     {.kind = Kind::kTraining, .recompute = {"layers.*"}, .peak = 9216, .step_change = -0.003},
                     {.kind = Kind::kTraining, .recompute = {"a.*", "b.*"}, .micro_batches = 4, .peak = 9216},
                     {.kind = Kind::kMoreNodes, .cluster = "ascend-910x2", .peak = 9216}};
  answer.obstacles = {{.name = "a", .entry = "[{}]", .is_option = true, .peak_without = plan.memory.peak - 2048},
                      {.num_joined = 2, .peak_without = 1024, .fits_without = true}};
  answer.undivided_batch = "2*B";
  const std::string text = infeasibility_report(answer);
  expect_fits_terminal(text);
  expect_golden("report/infeasibility.txt", text);
  expect_golden("report/infeasibility.json", infeasibility_json(answer));
}

// Beside many names of the file a table shows only what is new; JSON has all of them.
TEST(InfeasibilityReportTest, ManyNamesToRecomputeAreLeftOutOfTheTable) {
  Plan plan = tiny_plan();
  Model model;
  model.training.emplace();
  model.training->recompute = {"layers.*.attn.softmax", "layers.*.attn.dropout", "layers.*.norm1.layer_norm"};
  Infeasibility answer;
  answer.smallest = &plan;
  answer.remedies = {{.kind = Infeasibility::Remedy::Kind::kTraining, .recompute = model.training->recompute}};
  answer.remedies[0].recompute.push_back("layers.*.ffn");
  plan.model = std::make_shared<const Model>(std::move(model));
  const std::string text = infeasibility_report(answer);
  expect_fits_terminal(text);
  EXPECT_NE(text.find("training: {recompute: [..., layers.*.ffn]}"), std::string::npos) << text;
  EXPECT_NE(infeasibility_json(answer).find("layers.*.norm1.layer_norm, layers.*.ffn]"), std::string::npos);
}

}  // namespace
}  // namespace shardplan
