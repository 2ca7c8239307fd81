#include "planner/overlap/kind_problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

/// Enough for a plan to start from: some tens of plans are scheduled.
constexpr std::uint64_t kWorkOfStart = 500'000'000;

ModelPlanner shipped(const char* model, const char* cluster, std::int64_t layers, std::uint64_t work_limit = 0) {
  ModelOverrides overrides;
  overrides.dims["L"] = layers;
  PlanOptions options;
  options.work_limit = work_limit;
  return {std::make_shared<const Model>(read_model(model, overrides)), read_cluster(cluster), options};
}

TEST(KindProblemsTest, CommonDegreesAreStagesOfZeroBesideTensorsOfOneNode) {
  const ModelPlanner planner = shipped("configs/gpt3-175b.yaml", "dgx-a100x4", 2);
  const std::uint32_t nvlink = 1;
  const std::vector<AxisRef> pieces{{0, 1, 4}, {nvlink, 1, 2}, {nvlink, 2, 4}};
  std::vector<GlobalDegrees> expected;
  for (const std::int64_t tensor : {1, 2, 8}) {
    for (const bool sequence : {false, true}) {
      if (sequence && tensor == 1) continue;
      for (const int zero : {3, 2, 1}) {
        const std::vector<AxisRef> axes{{nvlink, 1, tensor}};
        expected.push_back({tensor == 1 ? std::vector<AxisRef>() : axes, {}, sequence, zero});
      }
    }
  }
  const std::vector<GlobalDegrees> all = common_degrees(planner.graph(), pieces);
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].tensor, expected[i].tensor) << i;
    EXPECT_EQ(all[i].sequence, expected[i].sequence) << i;
    EXPECT_EQ(all[i].zero, expected[i].zero) << i;
    EXPECT_EQ(all[i].may_keep, all[i].zero == 3) << i;
  }
}

// A micro-batch has 768 samples, so of 4 x 256 x 8 devices at most 256 share them.
TEST(KindProblemsTest, WhatASmallBatchLeavesIsForTensorsAndContext) {
  const ModelPlanner planner = shipped("configs/gpt3-175b.yaml", "dgx-a100x1024", 2);
  const AxisRef outer{0, 1, 4}, inner{0, 4, 256}, nvlink{1, 1, 8};
  const std::vector<AxisRef> pieces{outer, inner, nvlink};
  const std::vector<GlobalDegrees> all = common_degrees(planner.graph(), pieces);
  using Axes = std::vector<AxisRef>;
  const std::vector<std::pair<Axes, Axes>> left{
      {{outer, nvlink}, {}}, {{nvlink}, {outer}}, {{outer}, {nvlink}}, {{}, {outer, nvlink}}};
  for (const auto& [tensor, context] : left) {
    const auto count = std::count_if(all.begin(), all.end(), [&](const GlobalDegrees& degrees) {
      return degrees.tensor == tensor && degrees.context == context;
    });
    EXPECT_EQ(count, tensor.empty() ? 3 : 6);  // stages of ZeRO, with and without sequence parallelism
  }
  EXPECT_EQ(all.size(), 9 + 21);
}

TEST(KindProblemsTest, WeightsThatAreKeptAreNotGatheredAgain) {
  const ModelPlanner planner = shipped("configs/gpt3-175b.yaml", "dgx-a100x32", 4, kWorkOfStart);
  const Plan plan = planner.plan(Level::kSpeed, "auto");
  GlobalDegrees degrees{{AxisRef{1, 1, 8}}, {}, false, 3};
  std::string why;
  const std::optional<Plan> gathered = planner.plan_of_degrees(plan, degrees, &why);
  degrees.may_keep = true;
  const std::optional<Plan> kept = planner.plan_of_degrees(plan, degrees, &why);
  ASSERT_TRUE(gathered && kept) << why;
  EXPECT_LT(kept->time.communication, gathered->time.communication - gathered->time.communication / 20);
  EXPECT_LT(kept->time.step(), gathered->time.step());
}

/// A plan that hides most of its communication, searched on its own, compared with the plan of a free search.
struct KindCase {
  const char* name;
  const char* model;
  const char* cluster;
  std::int64_t layers;
  std::int64_t tensor;
  int zero;
};

class KindPlans : public testing::TestWithParam<KindCase> {};

TEST_P(KindPlans, AreNotFasterThanThePlan) {
  const KindCase& tested = GetParam();
  const ModelPlanner planner = shipped(tested.model, tested.cluster, tested.layers);
  const Plan plan = planner.plan(Level::kSpeed, "auto");
  ASSERT_TRUE(plan.is_overlapped);
  GlobalDegrees degrees;
  if (tested.tensor > 1) degrees.tensor = {AxisRef{1, 1, tested.tensor}};
  degrees.zero = tested.zero;
  std::string why;
  const std::optional<Plan> found = planner.plan_of_degrees(plan, degrees, &why);
  ASSERT_TRUE(found) << why;
  // There a kind has its own search, which may get slightly further.
  EXPECT_LE(plan.time.step(), found->time.step() + found->time.step() / 500);
}

const KindCase kSmallCases[] = {
    {"gpt3_on_512", "configs/gpt3-175b.yaml", "dgx-a100x64", 24, 2, 3},
    {"llama_on_64", "configs/llama-7b-train.yaml", "dgx-a100x8", 32, 1, 2},
};
INSTANTIATE_TEST_SUITE_P(KindProblemsTest, KindPlans, testing::ValuesIn(kSmallCases),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace shardplan
