#include "report/plan/bound_lines.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "costmodel/cluster/cluster.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// A product of 64 rows by a 64 x 64 weight; `more` adds keys at the top.
Plan bounded_plan(const std::string& cluster, const std::string& more = "") {
  const auto model = std::make_shared<const Model>(read_model_text(
      "shardplan: 1\ninputs: {x: [64, 64]}\noperators: {a: {block: nn.Dense, in: x, out_channels: 64}}\n" + more,
      "m.yaml"));
  return ModelPlanner(model, read_cluster(cluster), {}).plan(Level::kSpeed, "auto");
}

// Eight devices are divided in three pairs, of which strategies take any; 64 are not divided to the end.
TEST(BoundLinesTest, SayWhichPlansTheBoundCovers) {
  const std::string all = objective_line(bounded_plan("dgx-a100"));
  EXPECT_EQ(all.find(" with "), std::string::npos) << all;
  expect_has(objective_line(bounded_plan("dgx-a100x8")), "no plan with mesh pieces 8 x 2 x 4");
  expect_has(objective_line(bounded_plan("dgx-a100", "strategies: {a.weight: {strategy: \"[{}, {}]\"}}\n")),
             "no plan with the given layouts");
  expect_has(objective_line(bounded_plan("dgx-a100", "parallel: {mesh: {dp: 2, mp: 4}}\n")),
             "no plan with mesh pieces 2 x 4");
}

TEST(BoundLinesTest, SayHowFarAboveTheOptimumAPoorPlanMayBe) {
  Plan plan = bounded_plan("dgx-a100");
  plan.overlapped_bound.reset();
  plan.status = PlanStatus::kFeasible;
  plan.bound.amount = 100;
  plan.cost.amount = 199;
  expect_has(objective_line(plan), "  optimal within 99.0 %: no plan");
  plan.cost.amount = 300;
  expect_has(objective_line(plan), "  at most 200.0 % above the optimum: no plan");
}

// A plan that repeats products has no ratio, so its ratio cannot be optimal; the bound on communication still holds.
TEST(BoundLinesTest, SayThatThereIsNoRatioIfProductsAreRepeated) {
  Plan plan = bounded_plan("dgx-a100");
  plan.options.level = plan.cost.level = plan.bound.level = Level::kRatio;
  plan.overlapped_bound.reset();
  plan.status = PlanStatus::kOptimal;
  plan.time.communication = 100;
  expect_has(objective_line(plan), "optimal: no plan communicates less\n");
  plan.time.repeated = 1;
  expect_has(objective_line(plan),
             "  ratio       -          undefined, as products are repeated; no plan communicates less\n");
  plan.status = PlanStatus::kFeasible;
  plan.bound.amount = 0;
  expect_has(objective_line(plan), "undefined, as products are repeated; gap to the optimum unknown\n");
}

TEST(BoundLinesTest, SayWhatFreeLayersCouldSave) {
  Plan plan = bounded_plan("dgx-a100");
  EXPECT_EQ(layers_line(plan), "");
  plan.has_uniform_layers = true;
  plan.cost.amount = 100;
  plan.overlapped_bound.reset();
  expect_has(layers_line(plan), "were not bounded");
  plan.free_bound = LevelValue{Level::kSpeed, 90};
  expect_has(layers_line(plan), "at most 10.0 % of the step");
  plan.free_bound = LevelValue{Level::kSpeed, 100};
  expect_has(layers_line(plan), "would save nothing");
}

}  // namespace
}  // namespace shardplan
