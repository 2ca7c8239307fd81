#include "report/plan/summary.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"
#include "tests/support/hand_plan.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(SummaryTest, IsAsRecorded) {
  Plan plan = tiny_plan();
  plan.bound.amount = plan.cost.amount / 2;
  plan.baselines = {{"data_parallel", plan.time, plan.memory.peak, true}};
  SummaryOptions options;
  options.out_folder = "out/";
  options.written = {"plan.json", "strategies.txt"};
  const std::string text = summary_report(plan, options);
  expect_fits_terminal(text);
  expect_golden("report/summary.txt", text);
  EXPECT_EQ(text.find("searched"), std::string::npos);
  plan.options.time_limit = 1.5;
  EXPECT_NE(
      summary_report(plan, options).find("\n  searched    for at most 1.5 s: another run may find another plan\n"),
      std::string::npos);
}

}  // namespace
}  // namespace shardplan
