#include "planner/overlap/overlap_search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

/// The whole search takes four times as long. Guesses are tried early in it.
constexpr std::uint64_t kWork = 4'000'000'000, kWorkOfGuesses = 1'000'000'000;

PlanOptions limited_to(std::uint64_t work) {
  PlanOptions options;
  options.work_limit = work;
  return options;
}

Plan mixtral_plan(const std::map<std::string, std::string>& strategies) {
  ModelOverrides overrides;
  overrides.strategies = strategies;
  const auto model = std::make_shared<const Model>(read_model("configs/models/mixtral-8x7b.yaml", overrides));
  return ModelPlanner(model, read_cluster("dgx-h100x8"), limited_to(kWorkOfGuesses)).plan(Level::kSpeed, "auto");
}

// For the sum of times it makes no difference whether experts are gathered between nodes when they are new or when they
// are read; with overlap it does.
TEST(OverlapSearchTest, WeightsAreGatheredWhereThatIsHidden) {
  std::map<std::string, std::string> in_pieces;
  for (const char* weight : {"w_gate", "w_up", "w_down"}) {
    in_pieces[std::string("layers.*.experts.") + weight] = "[{nvlink}, {ib}, {}]";
  }
  const Plan by_hand = mixtral_plan(in_pieces);
  const Plan found = mixtral_plan({});
  ASSERT_TRUE(by_hand.fits());
  EXPECT_LE(found.time.step(), by_hand.time.step() + by_hand.time.step() / 50);
}

// If all weights are stored in pieces, their gathers are hidden. The guess that counts activations by a half finds
// that.
TEST(OverlapSearchTest, AllWeightsAreStoredInPiecesWhereActivationsAreHalfHidden) {
  ModelOverrides overrides;
  overrides.dims = {{"L", 16}};
  const auto model = std::make_shared<const Model>(read_model("configs/gpt3-175b.yaml", overrides));
  PlanOptions options = limited_to(kWorkOfGuesses);
  options.capacity = Bytes{19} << 30;
  const Plan found = ModelPlanner(model, read_cluster("dgx-a100x128"), options).plan(Level::kSpeed, "auto");
  ASSERT_TRUE(found.fits());
  EXPECT_LT(open_gap(found).value(), 0.1);
}

// A stored plan has decisions, but no order: read back, it takes as long as it was said to. (With an order that is not
// refined to the end mlp takes 3 % longer.)
TEST(OverlapSearchTest, ItsDecisionsAloneAreOrderedAsThePlanIs) {
  for (const char* file : {"configs/mlp.yaml", "configs/mnist-train.yaml"}) {
    const auto model = std::make_shared<const Model>(read_model(file));
    const ModelPlanner planner(model, read_cluster(model->cluster.value), {});
    for (const Level level : kLevels) {
      SCOPED_TRACE(fmt::format("{} at level {}", file, number_of(level)));
      const Plan plan = planner.plan(level, "auto");
      const Plan again = planner.reported({plan.strategies, plan.versions}, planner.unsolved(level, "auto"));
      EXPECT_EQ(again.time.step(), plan.time.step());
      EXPECT_EQ(again.memory.peak, plan.memory.peak);
    }
  }
}

// Sums of times do not say which weights to gather when they are new and which when they are read, so that both are
// hidden, if kernels take long enough.
TEST(OverlapSearchTest, WhatSumsDoNotTellApartIsFoundNearThePlan) {
  const auto model = std::make_shared<const Model>(read_model("configs/bert-base.yaml"));
  Cluster cluster = read_cluster(model->cluster.value);
  cluster.fusion = Fusion::kNone;
  const Plan found = ModelPlanner(model, cluster, limited_to(kWork)).plan(Level::kSpeed, "auto");
  ASSERT_TRUE(found.fits());
  EXPECT_LT(open_gap(found).value(), 0.075);
}

// Tables that are stored in pieces are gathered while layers run before and behind, so nothing is exposed; guesses that
// weigh all weights alike gather them after the update.
TEST(OverlapSearchTest, WhatWindowsCouldHideIsFound) {
  for (const char* file : {"configs/mixture.yaml", "configs/gpt2-small.yaml"}) {
    SCOPED_TRACE(file);
    const auto model = std::make_shared<const Model>(read_model(file));
    const Plan found = ModelPlanner(model, read_cluster(model->cluster.value), {}).plan(Level::kSpeed, "auto");
    ASSERT_TRUE(found.fits());
    EXPECT_LT(open_gap(found).value(), 0.01);
  }
}

// Where the search for single nodes ends depends on the capacity: here it is a plan 25 % above the bound, although one
// within 10 % fits. Parts of the plan that are searched again lead to that one.
TEST(OverlapSearchTest, PlansDoNotDependOnWhereTheSearchFirstEnds) {
  const auto model = std::make_shared<const Model>(read_model("configs/mnist-train.yaml"));
  PlanOptions options = limited_to(kWork);
  options.capacity = Bytes{140} << 10;
  const Plan found = ModelPlanner(model, read_cluster("ascend-910"), options).plan(Level::kSpeed, "auto");
  ASSERT_TRUE(found.fits());
  EXPECT_LT(open_gap(found).value(), 0.1);
}

// With weights kept gathered for the backward pass the step is 0.2 % shorter and fills the device.
TEST(OverlapSearchTest, OfPlansThatTakeNearlyTheSameTimeTheLeanerIsTaken) {
  ModelOverrides overrides;
  overrides.dims = {{"L", 16}};
  const auto model = std::make_shared<const Model>(read_model("configs/models/llama3-70b.yaml", overrides));
  PlanOptions options = limited_to(kWork);
  options.capacity = Bytes{24} << 30;
  const Plan found = ModelPlanner(model, read_cluster("dgx-h100x8"), options).plan(Level::kSpeed, "auto");
  ASSERT_TRUE(found.fits());
  EXPECT_LT(found.memory.peak, *options.capacity / 100 * 90);
  EXPECT_LT(open_gap(found).value(), 0.05);
}

// The plan with the least sum of times fills the memory so much that none of its overlapped orders fits.
TEST(OverlapSearchTest, GoesOnWhereNoOrderOfTheFirstPlanFits) {
  const auto model = std::make_shared<const Model>(read_model("configs/gpt3-175b.yaml"));
  PlanOptions options = limited_to(100'000'000);
  options.pieces = {{0, 1, 2}, {0, 2, 64}, {1, 1, 8}};
  const Plan found = ModelPlanner(model, read_cluster("dgx-a100x128"), options).plan(Level::kSpeed, "auto");
  ASSERT_TRUE(found.fits());
  EXPECT_TRUE(found.is_overlapped);
  EXPECT_LT(found.time.step(), found.bound.amount / 100 * 90) << "in sequence it takes at least that bound";
}

}  // namespace
}  // namespace shardplan
