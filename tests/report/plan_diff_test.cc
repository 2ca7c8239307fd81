#include "report/plan/plan_diff.h"

#include <gtest/gtest.h>

#include "graph/folded_names.h"
#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(PlanDiffTest, EqualPlansDoNotDiffer) {
  const Plan plan = tiny_plan();
  const PlanDiff diff = plan_diff(plan, plan);
  EXPECT_TRUE(diff.is_empty());
  EXPECT_EQ(diff.num_differing, 0u);
  expect_has(diff_report(plan, plan), "\n  the plans are equal\n");
}

// Of one plan in two orders only the step and what is live at its peak differ.
TEST(PlanDiffTest, PlansInOtherOrdersAreNotEqual) {
  const Plan plan = tiny_plan();
  Plan other = plan;
  other.time.exposed += 1;
  expect_has(diff_report(plan, other), "everything is sharded alike; the instructions run in another order");
  other = plan;
  other.memory.alive_at_peak.pop_back();
  const std::string text = diff_report(plan, other);
  expect_has(text, "in another order");
  expect_has(text, "live at the peak");
}

TEST(PlanDiffTest, FoldsCopiesAndCountsThem) {
  const Plan before = tiny_plan();
  Plan after = tiny_plan();
  for (const OperatorId op : after.graph->operators().ids()) {
    if (folded_name(after.graph->operators()[op].name) == "layers.*.relu") after.strategies[op].factors = {{}, {}, {}};
  }
  const PlanDiff diff = plan_diff(before, after);
  EXPECT_EQ(diff.num_differing, 2u);
  ASSERT_EQ(diff.operators.size(), 1u);
  EXPECT_EQ(diff.operators[0].names, (std::vector<std::string>{"layers.*.relu"}));
  EXPECT_EQ(diff.operators[0].after, "all repeated");
  EXPECT_TRUE(diff.blocks.empty()) << "the program is the same";
}

TEST(PlanDiffTest, ShowsAnotherModelsNamesAsNewOrGone) {
  const Plan before = block_plan(), after = tiny_plan();
  const std::string text = diff_report(before, after);
  expect_golden("report/diff.txt", text);
  expect_golden("report/diff.json", diff_json(before, after));
  for (const char* nothing : {"+0.0\n", "-0.0\n"}) EXPECT_EQ(text.find(nothing), std::string::npos) << nothing;
  // In the two directions the changes are each other's negatives.
  const PlanDiff there = plan_diff(before, after), back = plan_diff(after, before);
  ASSERT_EQ(there.blocks.size(), back.blocks.size());
  std::int64_t sum = 0;
  for (const PlanDiff::Change& change : there.blocks) sum += change.change();
  for (const PlanDiff::Change& change : back.blocks) sum += change.change();
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(there.num_differing, back.num_differing);
  EXPECT_EQ(there.num_differing, there.num_operators) << "none has a namesake";
  EXPECT_EQ(back.num_operators, there.num_operators);
}

/// The blocks' changes add up to the whole step's.
TEST(PlanDiffTest, BlocksAddUpToTheStep) {
  const Plan before = block_plan(), after = tiny_plan();
  std::int64_t change = 0;
  for (const PlanDiff::Change& block : plan_diff(before, after).blocks) change += block.change();
  EXPECT_EQ(change, after.time.step() - before.time.step());
}

/// So do those of the classes of the critical path, if collectives overlap with kernels.
TEST(PlanDiffTest, ClassesOfTheCriticalPathAddUpToTheOverlappedStep) {
  Plan before = block_plan(), after = tiny_plan();
  EXPECT_TRUE(plan_diff(before, after).path.empty());
  before.is_overlapped = true;
  EXPECT_TRUE(plan_diff(before, after).path.empty());
  after.is_overlapped = true;
  std::int64_t change = 0;
  for (const PlanDiff::Change& one : plan_diff(before, after).path) change += one.change();
  EXPECT_EQ(change, overlapped_timeline(after.program).end - overlapped_timeline(before.program).end);
  EXPECT_NE(change, 0);
  expect_has(diff_report(before, after), "\n  critical path, us ");
  expect_has(diff_json(before, after), "\"critical_path\": [\n  {\"name\": ");
}

}  // namespace
}  // namespace shardplan
