#include "report/metrics/step_path.h"

#include <gtest/gtest.h>

#include <map>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "report/plan/summary.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(StepPathTest, ClassesAreThoseOfTheInstructionsThatThePathRunsThrough) {
  Plan plan = tiny_plan();
  plan.is_overlapped = true;
  const CriticalPath path = step_path(plan);
  ASSERT_EQ(path.shares.size(), plan.program.instructions.size());
  std::map<std::string, Picoseconds> times;
  for (const PathClass& one : path_classes(plan, path)) times[one.name] = one.time();
  Picoseconds products = 0, updates = 0, all = 0;
  for (std::size_t i = 0; i < path.shares.size(); ++i) {
    const Instruction& instruction = plan.program.instructions[i];
    all += path.shares[i].time;
    if (instruction.kind != InstructionKind::kOperator) continue;
    const bool is_update = instruction.pass == Pass::kUpdate;
    if (is_update) updates += path.shares[i].time;
    const bool is_product = instruction.operation->type->work == WorkKind::kContraction;  // there is no attention here
    if (!is_update && is_product) products += path.shares[i].time;
  }
  EXPECT_EQ(times["matmul"], products);
  EXPECT_EQ(times["update"], updates);
  EXPECT_GT(products, 0);
  EXPECT_EQ(all, overlapped_timeline(plan.program).end);
  std::string names;
  for (const auto& [name, time] : times) names += name + "; ";
  EXPECT_EQ(
      names,
      "all_gather of activations; all_gather of states; all_gather of weights; all_reduce of activations; elementwise; "
      "matmul; update; ");
}

TEST(StepPathTest, OneAfterTheOtherAndOnSeveralWorkersThereIsNone) {
  Plan plan = tiny_plan();
  EXPECT_TRUE(step_path(plan).shares.empty());
  EXPECT_TRUE(path_classes(plan, step_path(plan)).empty());
  plan.is_overlapped = true;
  plan.program.workers = 2;
  EXPECT_TRUE(step_path(plan).shares.empty());
}

// For plans with micro-batches and mutual slowdown: the classes add up to the step, in both forms of the summary.
TEST(StepPathTest, ClassesTakeTheWholeStep) {
  ModelOverrides overrides;
  overrides.dims = {{"L", 2}};
  PlanOptions options;
  options.work_limit = 200'000;
  const auto model = std::make_shared<const Model>(read_model("configs/llama-7b-train.yaml", overrides));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), options).plan(Level::kSpeed, "auto");
  ASSERT_TRUE(plan.is_overlapped);
  ASSERT_GT(plan.program.micro_batches, 1);
  const std::vector<PathClass> classes = path_classes(plan, step_path(plan));
  Picoseconds sum = 0, slowed = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    sum += classes[i].time();
    slowed += classes[i].slowed;
    EXPECT_LE(classes[i].slowed, classes[i].time());
    EXPECT_LE(classes[i].time(), classes[i == 0 ? 0 : i - 1].time());
  }
  EXPECT_EQ(sum, plan.time.step());
  EXPECT_GT(slowed, 0);
  SummaryOptions summary;
  expect_has(summary_report(plan, summary), "\n  critical    path: " + classes[0].name + " ");
  EXPECT_EQ(summary_report(plan, summary).find("critical path, "), std::string::npos);
  summary.verbose = true;
  expect_has(summary_report(plan, summary), "\n  critical path, s ");
}

}  // namespace
}  // namespace shardplan
