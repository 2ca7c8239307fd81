#include "planner/infeasibility_analysis.h"

#include <gtest/gtest.h>

#include <memory>

#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

Plan smallest_plan(const std::string& text, Bytes capacity) {
  auto model = std::make_shared<const Model>(read_model_text(text, "model.yaml"));
  PlanOptions options;
  options.capacity = capacity;
  options.uniform_layers = false;  // with recomputation the last layer is laid out otherwise than the others
  return ModelPlanner(model, read_cluster("ascend-910"), options).smallest();
}

// Three layers whose inner activations are four times as large as what lies between them.
constexpr const char* kDeep = R"(
shardplan: 1
model: deep
inputs: {x: [1024, 256]}
blocks:
  layer:
    inputs: {x: [1024, 256]}
    operators:
      up:   {block: nn.Dense, in: x, out_channels: 1024}
      gelu: {op: GeLU, in: up}
      down: {block: nn.Dense, in: gelu, out_channels: 256}
operators:
  layers: {block: layer, in: x, repeat: 3}
  loss:   {op: ReduceSum, in: layers}
loss: loss
training: {optimizer: sgd}
parallel: {mesh: {x: 2, y: 4}}
)";

TEST(InfeasibilityAnalysisTest, NamesOnlyChangesThatFit) {
  using Kind = Infeasibility::Remedy::Kind;
  const Plan without_limit = smallest_plan(kDeep, kUnlimitedBytes);
  const Plan smallest = smallest_plan(kDeep, without_limit.memory.peak * 4 / 5);
  const Infeasibility answer = analyse_infeasibility(smallest);
  EXPECT_TRUE(answer.proven);
  bool recompute = false;
  for (const Infeasibility::Remedy& remedy : answer.remedies) {
    if (remedy.kind != Kind::kLargerDevices) {
      EXPECT_LE(remedy.peak, smallest.usable);
    }
    recompute = recompute || (remedy.kind == Kind::kRecompute && remedy.block == "layers.*");
    // The mesh is the user's: more nodes would need another.
    EXPECT_NE(remedy.kind, Kind::kMoreNodes);
  }
  EXPECT_TRUE(recompute);
  EXPECT_EQ(answer.remedies.back().kind, Kind::kLargerDevices);
  EXPECT_EQ(answer.remedies.back().device_memory, smallest.memory.peak + smallest.cluster.device.reserved);
  EXPECT_TRUE(answer.obstacles.empty());
}

TEST(InfeasibilityAnalysisTest, SaysWhatAStrategyCosts) {
  const std::string text = std::string(kDeep) + "strategies:\n  layers.*.up.weight: {strategy: [1, 1]}\n";
  const Plan free = smallest_plan(kDeep, kUnlimitedBytes);
  // Three weights of 1 MiB whole instead of in eight pieces.
  const Infeasibility answer = analyse_infeasibility(smallest_plan(text, free.memory.peak));
  ASSERT_EQ(answer.obstacles.size(), 1u);
  EXPECT_EQ(answer.obstacles[0].name, "layers.*.up.weight");
  EXPECT_EQ(answer.obstacles[0].entry, "[1, 1]");
  EXPECT_EQ(answer.obstacles[0].line, 19);
  EXPECT_FALSE(answer.obstacles[0].is_option);
  EXPECT_EQ(answer.obstacles[0].peak_without, free.memory.peak);
  EXPECT_TRUE(answer.obstacles[0].fits_without);
}

}  // namespace
}  // namespace shardplan
