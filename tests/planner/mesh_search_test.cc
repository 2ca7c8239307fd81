#include "planner/mesh_search.h"

#include <gtest/gtest.h>

#include <string>

#include "costmodel/cluster/cluster_mesh.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"

namespace shardplan {
namespace {

// Six heads and six experts on twelve devices: it matters which of the pieces 2, 2, 3 are combined.
constexpr char kWideModel[] = R"(shardplan: 1
cluster: wide.yaml
inputs: {x: [24, 48]}
operators:
  a:    {block: nn.Dense, in: x, out_channels: 96}
  b:    {op: ReLU, in: a}
  c:    {block: nn.Dense, in: b, out_channels: 48}
  s:    {op: Square, in: c}
  loss: {op: ReduceMean, in: s}
loss: loss
training: {optimizer: adamw}
parallel: {level: 2, mesh: auto}
)";

Cluster cluster() {
  return read_cluster_text(R"(shardplan: 1
cluster: wide
device:
  name: one
  memory: {capacity: 4 GiB, reserved: 0 GiB, bandwidth: 100 GB/s}
  flops: {f32: 1 TFLOP/s}
  efficiency: {matmul: 1, memory: 1}
  start: 1 us
levels:
  - {name: node, count: 4, latency: 10 us, bandwidth: 1 GB/s, link_per: device}
  - {name: net, count: 6, latency: 1 us, bandwidth: 10 GB/s, link_per: device}
)",
                           "wide.yaml");
}

TEST(MeshSearchTest, TheBestOfAllShapesIsTakenAndTheBoundIsThatOfAll) {
  const auto model = std::make_shared<const Model>(read_model_text(kWideModel, "m.yaml"));
  for (const Level level : kLevels) {
    PlanOptions options;
    options.level = level;
    options.work_limit = 50'000'000;
    const ShapedPlan best = plan_best_shape(model, cluster(), options);
    ASSERT_EQ(best.plan.tried_shapes.size(), 3u);  // node in 2 2, or net in 2 3, or in 3 2
    bool is_taken = false;
    for (const TriedShape& shape : best.plan.tried_shapes) {
      PlanOptions of_shape = options;
      of_shape.pieces = shape.pieces;
      const Plan alone = ModelPlanner(model, cluster(), of_shape).plan(level, "auto");
      EXPECT_EQ(alone.time.step(), shape.time.step());
      EXPECT_EQ(alone.memory.peak, shape.peak);
      EXPECT_EQ(alone.bound.amount, shape.bound.amount);
      EXPECT_LE(best.plan.bound.amount, shape.bound.amount);
      if (level == Level::kSpeed) {
        EXPECT_LE(best.plan.time.step(), shape.time.step());
      } else {
        EXPECT_FALSE(is_better(alone, best.plan));
      }
      if (shape.pieces != best.plan.options.pieces) continue;
      is_taken = true;
      EXPECT_EQ(alone.strategies, best.plan.strategies);
    }
    EXPECT_TRUE(is_taken);
    EXPECT_LE(best.plan.bound.amount, best.plan.cost.amount);
  }
}

TEST(MeshSearchTest, OnOneDeviceThereIsNothingToTry) {
  std::string text = kWideModel;
  text.replace(text.find("mesh: auto"), 10, "parallel_mode: stand_alone, mesh: auto");
  const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  const ShapedPlan best = plan_best_shape(model, job_devices(cluster(), 1), {});
  EXPECT_EQ(best.plan.tried_shapes.size(), 1u);
  EXPECT_EQ(best.plan.mesh.num_devices(), 1);
}

}  // namespace
}  // namespace shardplan
