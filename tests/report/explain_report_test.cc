#include "report/plan/explain_report.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(ExplainReportTest, ShowsTheChosenStrategyAndOrdersTheOthers) {
  const Plan plan = tiny_plan();
  Explanation explanation;
  explanation.plan = &plan;
  explanation.op = *plan.graph->find_operator("layers.0.up.matmul");
  const Operation& operation = plan.graph->operation(explanation.op);
  Strategy by_columns, repeated;
  by_columns.factors.resize(operation.rule.factors.size());
  repeated = by_columns;
  by_columns.factors[*operation.rule.find("n")] = parse_axes("{pcie, hccs}", plan.mesh);
  StepTime gathered = plan.time, all = plan.time;
  gathered.exposed += 1'000'000'000;
  gathered.communication += 1'000'000'000;
  all.repeated = all.computation += 9'000'000'000;
  explanation.alternatives = {{repeated, all, plan.memory.peak + 2048, false},
                              {by_columns, gathered, plan.memory.peak, true}};
  const std::string text = explain_report(explanation);
  expect_fits_terminal(text);
  expect_golden("report/explain.txt", text);
  expect_golden("report/explain.json", explain_json(explanation));
  EXPECT_EQ(alternative_reason(plan, explanation.op, repeated), "all of the work done 8 times");
}

}  // namespace
}  // namespace shardplan
