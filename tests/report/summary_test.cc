#include "report/plan/summary.h"

#include <gtest/gtest.h>

#include "costmodel/cluster/cluster.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "report/plan/compare_report.h"
#include "report/plan/decisions_report.h"
#include "report/plan/infeasibility_report.h"
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
  EXPECT_NE(summary_report(plan, options)
                .find("\n  searched    with a time limit of 1.5 s: another run may find another plan\n"),
            std::string::npos);
}

/// Both numbers share a unit only if both are given in it.
TEST(SummaryTest, APeakHasTheUnitOfTheLimitOrItsOwn) {
  Plan plan = tiny_plan();
  plan.memory.peak = Bytes{144} << 30;
  plan.usable = Bytes{256} << 30;
  expect_has(summary_report(plan, {}), "  fits        144.0 of 256.0 GiB per device\n");
  plan.usable = Bytes{64} << 40;
  expect_has(summary_report(plan, {}), "  fits        144.0 GiB of 64.0 TiB per device\n");
}

TEST(SummaryTest, ProductsThatDevicesRepeatAreSaidIfTheyTakeLong) {
  Plan plan = tiny_plan();
  plan.time.computation = 1'000'000'000;
  plan.time.repeated = 20'000'000;
  EXPECT_EQ(summary_report(plan, {}).find("\n  repeated "), std::string::npos);
  plan.time.repeated = 600'000'000;
  expect_has(summary_report(plan, {}),
             "\n  repeated    600 us     of 1.00 ms computation: products that several devices repeat, not divide\n");
}

/// What most of a block's weights do comes first, whatever the order in which they are read.
TEST(SummaryTest, LayoutsOfABlockAreOrderedByTheBytesThatHaveThem) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
inputs: {x: [64, 64]}
blocks:
  pair:
    inputs: {x: [64, 64]}
    operators:
      few:  {block: nn.Dense, in: x, out_channels: 64, has_bias: false}
      many: {block: nn.Dense, in: few, out_channels: 1024, has_bias: false}
operators: {both: {block: pair, in: x}}
strategies: {both.few.weight: {strategy: "[{}, {}]"}, both.many.weight: {strategy: "[{nvlink}, {}]"}}
)",
                                                                   "m.yaml"));
  const ModelPlanner planner(model, read_cluster("dgx-a100"), {});
  expect_has(summary_report(planner.plan(Level::kRatio, "auto"), {}), "  [{nvlink}, {}], [{}, {}]\n");
}

/// One device is called one device on every page, and no other layouts of it are mentioned.
TEST(SummaryTest, OneDeviceIsSpokenOfAsOne) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
model: alone
inputs: {x: [64, 32]}
operators:
  fc:   {block: nn.Dense, in: x, out_channels: 16}
  loss: {op: ReduceSum, in: fc}
loss: loss
training: {optimizer: sgd}
)",
                                                                   "m.yaml"));
  const Cluster one = take_devices(read_cluster("ascend-910"), 1);
  const ModelPlanner planner(model, one, {});
  Plan plan = planner.plan(Level::kRatio, "auto");
  plan.baselines = {planner.data_parallel()};
  const std::string summary = summary_report(plan, {});
  expect_has(summary, ": 1 device, mesh of one device,");
  expect_has(summary, "  ratio       inf        optimal: nothing is communicated\n");
  EXPECT_EQ(summary.find("data parallel"), std::string::npos) << summary;
  expect_has(compare_report({compared("level 0", plan)}, {}), ": 1 device, ");
  Infeasibility answer;
  answer.smallest = &plan;
  expect_has(infeasibility_report(answer), ": 1 device, mesh of one device,");
  const std::string decisions = decisions_report(plan, explain_costliest(planner, plan, 3, {}, {}), {});
  expect_has(decisions, "there is only one device: nothing is decided\n");
  EXPECT_EQ(decisions.find("repeated"), std::string::npos) << decisions;
}

/// Workers of one device each are not one device: place decides.
TEST(SummaryTest, WorkersOfOneDeviceAreSeveral) {
  const auto model = std::make_shared<const Model>(read_model("configs/lenet-place.yaml"));
  const Cluster cluster = take_devices(read_cluster("dgx-a100"), 5);
  const ModelPlanner planner(model, cluster, {});
  const Plan plan = planner.plan(Level::kRatio, "auto");
  ASSERT_EQ(plan.program.workers, 5);
  expect_has(decisions_report(plan, explain_costliest(planner, plan, 3, {}, {}), {}),
             "place assigns all operators to workers: nothing is decided\n");
  EXPECT_EQ(compare_report({compared("level 0", plan)}, {}).find("all on one device"), std::string::npos);
}

}  // namespace
}  // namespace shardplan
