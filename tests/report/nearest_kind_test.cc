// Of a framework's stages of ZeRO, the one that is written for a plan: the nearest at which a plan fits.

#include "report/export/nearest_kind.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "base/units.h"
#include "model/read_model.h"
#include "report/export/export.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// Five products of which two have their optimizer states in pieces: most states are whole on every device.
ModelPlanner planner_with(Bytes capacity) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
dims: {B: 64, H: 1024}
inputs: {x: [B, H]}
operators:
  a:    {block: nn.Dense, in: x, out_channels: H, has_bias: false}
  b:    {block: nn.Dense, in: a, out_channels: H, has_bias: false}
  c:    {block: nn.Dense, in: b, out_channels: H, has_bias: false}
  d:    {block: nn.Dense, in: c, out_channels: H, has_bias: false}
  e:    {block: nn.Dense, in: d, out_channels: H, has_bias: false}
  loss: {op: ReduceMean, in: e}
loss: loss
training: {optimizer: adamw}
parallel: {parallel_mode: semi_auto_parallel}
strategies: {a.weight: {state_strategy: "[{nvlink}, {}]"}, b.weight: {state_strategy: "[{nvlink}, {}]"}}
)",
                                                                   "m.yaml"));
  PlanOptions options;
  options.capacity = capacity;
  return {model, read_cluster("dgx-h100"), options};
}

constexpr Bytes kRoomy = Bytes{1} << 30;
constexpr Bytes kTight = Bytes{78} << 20;  // the plan takes 74.5 MiB, with all states whole it would be 84

TEST(NearestKindTest, TheNextStageThatFitsIsTaken) {
  for (const Bytes capacity : {kRoomy, kTight}) {
    const ModelPlanner planner = planner_with(capacity);
    const Plan plan = planner.plan(Level::kRatio, "auto");
    ASSERT_TRUE(plan.fits());
    GlobalDegrees degrees = nearest_degrees(plan);
    EXPECT_EQ(degrees.zero, 0);
    std::vector<GlobalDegrees> others = other_stages(plan, degrees, {0, 1, 2, 3});
    ASSERT_EQ(others.size(), 2u) << "without micro-batches stages 1 and 2 are one";
    KindCosts costs(plan, planner);
    take_fitting(degrees, others, costs);
    EXPECT_EQ(degrees.zero, capacity == kRoomy ? 0 : 2);
    EXPECT_TRUE(costs.of(degrees).is_found);
    EXPECT_EQ(others.size(), 2u);
    EXPECT_EQ(others[0].zero, capacity == kRoomy ? 2 : 0);
    const ExportedText exported = export_plan(plan, "deepspeed", &planner);
    const char* const stage = capacity == kRoomy ? "" : ", ZeRO-2";
    expect_has(exported.nearest,
               fmt::format("data 8 x tensor 1{}, takes {} a step and {}", stage, format_time(costs.of(degrees).step),
                           format_bytes(costs.of(degrees).peak)));
    expect_has(exported.text, fmt::format("\"stage\": {},", degrees.zero));
  }
}

/// What needs more memory for its own sake is left out first.
TEST(NearestKindTest, CopiesAndKeptWeightsAreLeftOutWhereTheyDoNotFit) {
  const ModelPlanner roomy = planner_with(kRoomy);
  const Plan plan = roomy.plan(Level::kRatio, "auto");
  GlobalDegrees nearest = nearest_degrees(plan);
  nearest.zero = 3;
  nearest.must_keep = true;
  nearest.replicas = {AxisRef{0, 1, 4}};
  GlobalDegrees sharded = nearest, everywhere = nearest;
  sharded.must_keep = everywhere.must_keep = false;
  everywhere.replicas.clear();
  const GlobalDegrees in_order[] = {nearest, sharded, everywhere};
  for (const GlobalDegrees& roomiest : in_order) {
    const Bytes capacity = KindCosts(plan, roomy).of(roomiest).peak;
    SCOPED_TRACE(format_bytes(capacity));
    const ModelPlanner tight = planner_with(capacity);
    KindCosts costs(plan, tight);
    const auto* const first =
        std::ranges::find_if(in_order, [&](const GlobalDegrees& degrees) { return costs.of(degrees).is_found; });
    ASSERT_NE(first, std::end(in_order));
    GlobalDegrees taken = nearest;
    std::vector<GlobalDegrees> others = other_stages(plan, taken, {0, 2, 3});
    EXPECT_TRUE(others[0].replicas.empty() && !others[0].must_keep);
    take_fitting(taken, others, costs);
    EXPECT_EQ(taken.zero, 3);
    EXPECT_EQ(taken.must_keep, first->must_keep);
    EXPECT_EQ(taken.replicas, first->replicas);
  }
}

/// A plan that is of the kind is written as it is; if no stage fits, the reason is that of the nearest.
TEST(NearestKindTest, OtherwiseTheNearestRemains) {
  const ModelPlanner roomy = planner_with(kRoomy);
  const Plan plan = roomy.plan(Level::kRatio, "auto");
  const ModelPlanner tiny = planner_with(Bytes{1} << 20);
  GlobalDegrees degrees = nearest_degrees(plan);
  std::vector<GlobalDegrees> others = other_stages(plan, degrees, {0, 2, 3});
  KindCosts costs(plan, tiny);
  take_fitting(degrees, others, costs);
  EXPECT_EQ(degrees.zero, 0);
  EXPECT_FALSE(costs.of(degrees).is_found);
  expect_has(cost_text(degrees, others, costs), "cannot be planned: it does not fit: the smallest takes ");
}

TEST(NearestKindTest, DegreesAreNamedWithWhatIsSpecialAboutThem) {
  UniformPlan uniform;
  uniform.data = 4;
  uniform.tensor = 2;
  GlobalDegrees degrees;
  EXPECT_EQ(degrees_text(uniform, degrees), "data 4 x tensor 2");
  degrees.sequence = true;
  degrees.zero = 3;
  degrees.replicas = {AxisRef{0, 1, 2}};
  degrees.must_keep = true;
  EXPECT_EQ(degrees_text(uniform, degrees),
            "data 4 x tensor 2, sequence parallel, ZeRO-3 in 2 copies, weights kept gathered");
}

}  // namespace
}  // namespace shardplan
