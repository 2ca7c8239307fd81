#include "report/plan/decisions_report.h"

#include <gtest/gtest.h>

#include "report/metrics/step_shares.h"
#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

TEST(DecisionsReportTest, SharesOutTheStepCostliestFirst) {
  const Plan plan = tiny_plan();
  const std::vector<Decision> all = costliest_decisions(plan, 1000);
  Picoseconds sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum += all[i].time();
    if (i > 0) {
      EXPECT_LE(all[i].time(), all[i - 1].time());
    }
  }
  for (const Instruction& instruction : plan.program.instructions) {
    if (!spender(plan, instruction)) sum += instruction.time_of_step();
  }
  EXPECT_EQ(sum, plan.time.step());
  EXPECT_EQ(costliest_decisions(plan, 3).size(), 3u);
}

TEST(DecisionsReportTest, IsAsRecorded) {
  const Plan plan = tiny_plan();
  std::vector<ExplainedDecision> explained;
  for (const Decision& decision : costliest_decisions(plan, 2)) {
    Explanation explanation;
    explanation.plan = &plan;
    explanation.op = decision.op;
    Strategy repeated;
    repeated.factors.resize(plan.graph->operation(decision.op).rule.factors.size());
    for (std::int64_t i = 1; i <= 5; ++i) {
      StepTime time = plan.time;
      time.exposed += i * 1'000'000'000;
      explanation.alternatives.push_back({repeated, time, plan.memory.peak + 1024 * i, i < 5});
    }
    explained.push_back({decision, explanation});
  }
  expect_golden("report/decisions.txt", decisions_report(plan, explained));
  expect_golden("report/decisions.json", decisions_json(plan, explained));
}

}  // namespace
}  // namespace shardplan
