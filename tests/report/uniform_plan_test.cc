#include "report/export/uniform_plan.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

/// With ZeRO-3 frameworks keep a weight as it is stored. A plan may keep it whole, or in fewer pieces.
TEST(UniformPlanTest, KeptWeightsAreSaidToBeGatheredAgainWhereTheyAre) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
inputs: {x: [64, 256]}
operators:
  a:    {block: nn.Dense, in: x, out_channels: 1024, has_bias: false}
  b:    {block: nn.Dense, in: a, out_channels: 256, has_bias: false}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: adamw}
parallel: {parallel_mode: data_parallel, zero: 3}
)",
                                                                   "m.yaml"));
  Plan plan = ModelPlanner(model, read_cluster("dgx-h100"), {}).plan(Level::kSpeed, "auto");
  const TensorVersions versions = tensor_versions(*plan.graph);
  const auto differences_if_kept = [&](const std::string& layout) {
    for (const VersionId id : versions.all.ids()) {
      const bool is_kept = versions.all[id].kind == TensorVersion::Kind::kKept;
      if (!is_kept || plan.graph->tensor(versions.all[id].tensor).name != "b.weight") continue;
      plan.versions[id] = parse_layout(layout, plan.mesh);
    }
    return uniform_plan(plan, nearest_degrees(plan)).differences;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(differences_if_kept("[{nvlink}, {}]"), Lines());
  EXPECT_EQ(differences_if_kept("[{nvlink:(1)4}, {}]"),
            Lines{"b.weight: kept in 4 pieces, gathered again over nvlink:(1)4"});
  EXPECT_EQ(differences_if_kept("[{nvlink:(1)2}, {nvlink:(2)2}]"),
            Lines{"b.weight: kept in (2, 2) pieces, gathered again over nvlink:(1)4"});
  EXPECT_EQ(differences_if_kept("[{}, {}]"), Lines{"b.weight: gathered once, for forward and backward pass"});
}

Plan plan_of_products(const std::string& rest) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
inputs: {x: [64, 256]}
operators:
  a:    {block: nn.Dense, in: x, out_channels: 1024, has_bias: false}
  b:    {block: nn.Dense, in: a, out_channels: 256, has_bias: false}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: adamw}
)" + rest,
                                                                   "m.yaml"));
  return ModelPlanner(model, read_cluster("dgx-h100"), {}).plan(Level::kRatio, "auto");
}

TEST(UniformPlanTest, WeightsThatSomeDevicesReplicateAreHybridSharding) {
  const Plan plan = plan_of_products(
      "parallel: {parallel_mode: semi_auto_parallel, mesh: {r: 2, s: 4}}\n"
      "strategies: {a.weight: {strategy: \"[{s}, {}]\"}, b.weight: {strategy: \"[{s}, {}]\"}}\n");
  GlobalDegrees degrees = nearest_degrees(plan);
  EXPECT_EQ(degrees.zero, 3);
  EXPECT_NE(uniform_plan(plan, degrees).differences, std::vector<std::string>());
  degrees.replicas = zero_replicas(plan, degrees);
  EXPECT_EQ(degrees.replicas, std::vector<AxisRef>{plan.mesh.whole(0)});
  EXPECT_EQ(uniform_plan(plan, degrees).differences, std::vector<std::string>());

  const Plan everywhere = plan_of_products("parallel: {parallel_mode: data_parallel, zero: 3}\n");
  EXPECT_EQ(zero_replicas(everywhere, nearest_degrees(everywhere)), std::vector<AxisRef>());
}

TEST(UniformPlanTest, WhetherGatheredWeightsAreKeptIsAskedOfTheirBytes) {
  for (const bool resharded : {false, true}) {
    const Plan plan = plan_of_products(std::string("parallel: {parallel_mode: data_parallel, zero: 3, ") +
                                       "reshard_after_forward: " + (resharded ? "true" : "false") + "}\n");
    EXPECT_EQ(keeps_gathered(plan, nearest_degrees(plan)), !resharded);
  }
  const Plan whole = plan_of_products("parallel: {parallel_mode: data_parallel}\n");
  EXPECT_FALSE(keeps_gathered(whole, nearest_degrees(whole)));
}

}  // namespace
}  // namespace shardplan
