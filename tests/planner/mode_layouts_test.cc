#include "planner/problem/mode_layouts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

constexpr const char* kTwoProducts = R"(
shardplan: 1
cluster: dgx-h100
dims: {B: 64}
inputs: {x: [B, 256]}
operators:
  a:    {block: nn.Dense, in: x, out_channels: 256, has_bias: false}
  r:    {op: ReLU, in: a}
  b:    {block: nn.Dense, in: r, out_channels: 256, has_bias: false}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: adamw}
)";

Plan plan_of(const std::string& more) {
  auto model = std::make_shared<const Model>(read_model_text(kTwoProducts + more, "m.yaml", {}));
  const Cluster cluster = job_cluster(*model, {}).cluster;
  return ModelPlanner(model, cluster, {}).plan(Level::kRatio, "auto");
}

/// How many collectives of weights and their gradients there are: "backward all_gather bf16".
std::map<std::string, int> collectives_of_weights(const Plan& plan) {
  std::map<std::string, int> counts;
  for (const Instruction& instruction : plan.program.instructions) {
    const bool is_moved =
        instruction.kind == InstructionKind::kCollective && instruction.step->kind != CollectiveKind::kSlice;
    if (!is_moved) continue;
    const TensorType& type = plan.program.values[instruction.inputs[0]].type;
    if (type.shape != Shape{256, 256}) continue;
    const char* const pass = instruction.pass == Pass::kForward    ? "forward "
                             : instruction.pass == Pass::kBackward ? "backward "
                                                                   : "update ";
    ++counts[fmt::format("{}{} {}", pass, to_string(instruction.step->kind), to_string(type.dtype))];
  }
  return counts;
}

using Counts = std::map<std::string, int>;

// By hand: both weights are gathered for the forward pass, b's again for the gradient of its operand, in the type that
// products read; the gradients of the weights in f32 are reduced in f32.
TEST(ModeLayoutsTest, ACastWeightIsGatheredInItsTypeAndAgain) {
  const std::string zero = "autocast: bf16\nparallel: {parallel_mode: data_parallel, zero: 3";
  const Counts again = {
      {"forward all_gather bf16", 2}, {"backward all_gather bf16", 1}, {"update reduce_scatter f32", 2}};
  EXPECT_EQ(collectives_of_weights(plan_of(zero + "}\n")), again);
  EXPECT_EQ(collectives_of_weights(plan_of(zero + ", reshard_after_forward: true}\n")), again);
  const Counts kept = {{"forward all_gather bf16", 2}, {"update reduce_scatter f32", 2}};
  EXPECT_EQ(collectives_of_weights(plan_of(zero + ", reshard_after_forward: false}\n")), kept);
}

TEST(ModeLayoutsTest, AProductInF8GathersF8) {
  const Counts found =
      collectives_of_weights(plan_of("dtype: bf16\nfp8: [a, b]\nparallel: {parallel_mode: data_parallel, zero: 3}\n"));
  EXPECT_EQ(found.at("forward all_gather f8e4m3"), 2);
  EXPECT_EQ(found.at("backward all_gather f8e4m3"), 1);
}

// Frozen weights have no gradients and no states, but stage 3 cuts them as well.
TEST(ModeLayoutsTest, FrozenWeightsAreGatheredToo) {
  const std::string frozen = "strategies: {a: {requires_grad: false}}\n";
  for (const int stage : {1, 3}) {
    const Counts found = collectives_of_weights(
        plan_of(frozen + fmt::format("parallel: {{parallel_mode: data_parallel, zero: {}}}\n", stage)));
    const auto count = [&](const char* what) { return found.contains(what) ? found.at(what) : 0; };
    EXPECT_EQ(count("forward all_gather f32"), stage == 3 ? 2 : 0);
    EXPECT_EQ(count("update reduce_scatter f32"), 1);
  }
}

}  // namespace
}  // namespace shardplan
