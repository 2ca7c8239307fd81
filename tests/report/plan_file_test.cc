#include "report/plan_file/plan_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "graph/tensor_versions.h"
#include "model/model_source.h"
#include "report/plan/summary.h"
#include "report/plan_file/plan_json.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(PlanFileTest, IsReadBackAsTheSameDecisions) {
  for (const Plan& plan : {block_plan(), tiny_plan()}) {
    const std::string text = plan_json(plan);
    EXPECT_EQ(text, plan_json(plan));
    const PlanFile file = read_plan_file(text, "plan.json");
    const Decisions decisions = decisions_of(file, *plan.graph, tensor_versions(*plan.graph), plan.mesh);
    EXPECT_EQ(decisions.strategies, plan.strategies);
    EXPECT_EQ(decisions.versions, plan.versions);
    EXPECT_EQ(file.time.step(), plan.time.step());
    EXPECT_EQ(file.cost, plan.cost);
    EXPECT_EQ(file.model_text, plan.model->source->text());
  }
}

std::string read_fault(const std::string& text) {
  try {
    read_plan_file(text, "plan.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

TEST(PlanFileTest, HoldsWhatMindSporesCostModelSaidOfItsPlan) {
  Plan plan = tiny_plan();
  plan.options.costs = StrategyCosts::kMindSpore;
  plan.mindspore = {MindSporeValue{1001}, MindSporeValue{1000}};
  const PlanFile file = read_plan_file(plan_json(plan), "plan.json");
  EXPECT_EQ(file.options.costs, StrategyCosts::kMindSpore);
  ASSERT_TRUE(file.mindspore);
  EXPECT_EQ(file.mindspore->cost.parts, 1001);
  EXPECT_EQ(file.mindspore->bound.parts, 1000);
  expect_has(summary_report(plan, {}), "weighted bytes of its cost model; no forward strategies have less than 25.0\n");
}

TEST(PlanFileTest, HoldsOfWhichOrdersTheBoundIs) {
  Plan plan = tiny_plan();
  plan.overlapped_bound = plan.time.step() / 2;
  for (const bool one_ahead : {false, true}) {
    plan.is_bound_one_block_ahead = one_ahead;
    const PlanFile file = read_plan_file(plan_json(plan), "plan.json");
    EXPECT_EQ(file.overlapped_bound, plan.overlapped_bound);
    EXPECT_EQ(file.is_bound_one_block_ahead, one_ahead);
    expect_has(summary_report(plan, {}), one_ahead ? "in any order that recomputes at" : "in any order, takes");
  }
}

TEST(PlanFileTest, HostileFilesGiveOneClearError) {
  const std::string text = plan_json(block_plan());
  EXPECT_EQ(read_fault(replaced(text, "shardplan.plan/1", "shardplan.plan/2")),
            "plan.json:1:12: error: schema: found 'shardplan.plan/2', this version reads 'shardplan.plan/1'");
  EXPECT_EQ(read_fault(replaced(text, "shardplan.plan/1", "shardplan.plan/1.7")), "");
  EXPECT_EQ(read_fault(replaced(text, "\"level\": 0", "\"level\": 7")),
            "plan.json:5:23: error: options.level: expected a whole number from 0 to 2");
  EXPECT_EQ(read_fault(replaced(text, "\"k\": [\"pcie\", \"hccs\"]", "\"k\": 3")),
            "plan.json:11:276: error: operators[1].strategy.factors.k: expected a list");
  EXPECT_EQ(read_fault("{\n  \"schema\": }"), "plan.json:2:13: error: not JSON: found '}'; expected a value");
  EXPECT_EQ(read_fault("[]"), "plan.json:1:1: error: the document: expected an object");
  EXPECT_TRUE(read_fault(std::string(1000000, '[')).starts_with("plan.json:1:102: error: brackets nest deeper"));
  EXPECT_NE(read_fault(replaced(text, "\"size\": 2", "\"size\": 2000000000")), "");

  const Plan plan = tiny_plan();
  EXPECT_THROW(decisions_of(read_plan_file(text, "plan.json"), *plan.graph, tensor_versions(*plan.graph), plan.mesh),
               InputError);

  Random random(1);
  for (int i = 0; i < 300; ++i) {
    std::string broken = text;
    for (int k = 0; k < 3; ++k) broken[random.below(broken.size())] = static_cast<char>(random.below(256));
    if (i % 3 == 0) broken.resize(random.below(broken.size()));
    read_fault(broken);  // an error or none, never a crash
  }
}

/// Mistakes in the decisions are reported where they are, and missing ones at the list that lacks them.
TEST(PlanFileTest, DecisionsThatDoNotFitNameTheirPlaces) {
  const Plan plan = block_plan();
  const std::string text = plan_json(plan);
  const auto fault = [&](const std::string& from, const std::string& to) {
    const PlanFile file = read_plan_file(replaced(text, from, to), "plan.json");
    return error_of([&] { decisions_of(file, *plan.graph, tensor_versions(*plan.graph), plan.mesh); });
  };
  const auto line_of = [&](const std::string& what) {
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  };
  const std::string op = plan.graph->operators().begin()->name;
  const std::string operator_text = "{\"name\": \"" + op + "\"";
  EXPECT_EQ(fault(operator_text, "{\"name\": \"other\""),
            fmt::format("plan.json:{}:3: error: operators: the model has no 'other'\n"
                        "plan.json:{}:15: error: operators: '{}' is missing",
                        line_of(operator_text), line_of("\"operators\": ["), op));
  PlanFile without = read_plan_file(text, "plan.json");
  without.operators.clear();
  const std::string missing =
      error_of([&] { decisions_of(without, *plan.graph, tensor_versions(*plan.graph), plan.mesh); });
  EXPECT_EQ(missing.find('\n'), std::string::npos) << missing;
  EXPECT_NE(missing.find(" are missing"), std::string::npos) << missing;
}

}  // namespace
}  // namespace shardplan
