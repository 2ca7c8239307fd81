#include <gtest/gtest.h>

#include <memory>

#include "model/model_source.h"
#include "planner/model_planner.h"
#include "report/infeasibility_analysis.h"

namespace shardplan {
namespace {

Plan smallest_plan(const std::string& text, Bytes capacity) {
  auto model = std::make_shared<const Model>(read_model_text(text, "model.yaml"));
  PlanOptions options;
  options.capacity = capacity;
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

TEST(WhyNotTest, NamesOnlyChangesThatFit) {
  const Plan without_limit = smallest_plan(kDeep, kUnlimitedBytes);
  const Plan smallest = smallest_plan(kDeep, without_limit.memory.peak * 4 / 5);
  const Infeasibility answer = analyse_infeasibility(smallest);
  EXPECT_TRUE(answer.proven);
  bool recompute = false;
  for (const Infeasibility::Remedy& remedy : answer.remedies) {
    recompute = recompute || remedy.change == "training: {recompute: [layers.*]}";
    // The mesh is the user's: more nodes would need another.
    EXPECT_EQ(remedy.change.find("--cluster"), std::string::npos);
  }
  EXPECT_TRUE(recompute);
  EXPECT_EQ(answer.remedies.back().change.substr(0, 11), "devices of ");
  EXPECT_TRUE(answer.in_the_way.empty());
}

TEST(WhyNotTest, SaysWhatAStrategyCosts) {
  const std::string text = std::string(kDeep) + "strategies:\n  layers.*.up.weight: {strategy: [1, 1]}\n";
  const Plan free = smallest_plan(kDeep, kUnlimitedBytes);
  // Three weights of 1 MiB whole instead of in eight pieces.
  const Infeasibility answer = analyse_infeasibility(smallest_plan(text, free.memory.peak));
  ASSERT_EQ(answer.in_the_way.size(), 1u);
  EXPECT_EQ(answer.in_the_way[0].change, "layers.*.up.weight: [1, 1] (line 19)");
  EXPECT_NE(answer.in_the_way[0].effect.find("which fits"), std::string::npos) << answer.in_the_way[0].effect;
}

}  // namespace
}  // namespace shardplan
