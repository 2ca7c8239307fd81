#include "report/metrics/peak_holders.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

TEST(PeakHoldersTest, ShareOutThePeak) {
  for (const Plan& plan : {tiny_plan(), block_plan()}) {
    Bytes sum = 0;
    std::set<std::string> names;
    const auto holders = peak_holders(plan);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      sum += holders[i].second;
      EXPECT_TRUE(names.insert(holders[i].first).second) << holders[i].first << " is listed once";
      if (i > 0) {
        EXPECT_GE(holders[i - 1].second, holders[i].second);
      }
    }
    EXPECT_GT(plan.memory.peak, 0);
    EXPECT_EQ(sum, plan.memory.peak);
  }
}

// While a layer's gradients are computed, its recomputed activations are live.
TEST(PeakHoldersTest, RecomputedActivationsAreNotGradients) {
  const auto model = std::make_shared<const Model>(read_model_text(R"(shardplan: 1
cluster: dgx-a100
inputs: {x: [4096, 64]}
blocks:
  layer:
    inputs: {x: [4096, 64]}
    operators:
      up:   {block: nn.Dense, in: x, out_channels: 512, has_bias: false}
      act:  {op: GeLU, in: up}
      down: {block: nn.Dense, in: act, out_channels: 64, has_bias: false}
operators:
  a:    {block: layer, in: x}
  b:    {block: layer, in: a}
  loss: {op: ReduceMean, in: b}
loss: loss
training: {optimizer: momentum, recompute: [a, b]}
)",
                                                                   "m.yaml"));
  const Plan plan = ModelPlanner(model, take_devices(read_cluster("dgx-a100"), 1), {}).plan(Level::kSpeed, "auto");
  Bytes copies = 0;
  for (const MemoryProfile::Alive& alive : plan.memory.alive_at_peak) {
    const auto& tensor = plan.program.values[alive.value].tensor;
    const auto producer = tensor ? plan.graph->tensor(*tensor).producer : std::nullopt;
    if (producer && plan.graph->operators()[*producer].is_copy) copies += alive.bytes;
  }
  EXPECT_GT(copies, 0);
  const auto holders = peak_holders(plan);
  const std::map<std::string, Bytes> by_name(holders.begin(), holders.end());
  EXPECT_EQ(by_name.at("recomputed activations"), copies);
}

TEST(PeakHoldersTest, CachesAreNotWeights) {
  const auto model = std::make_shared<const Model>(read_model_text(
      "shardplan: 1\ncluster: dgx-a100\ninputs: {x: [8, 4, 1, 16], position: {shape: [8], dtype: i32}}\n"
      "parameters: {w: [16, 16], keys: {shape: [8, 4, 32, 16], requires_grad: false}}\noperators:\n"
      "  k: {op: KVCacheScatterUpdate, in: [keys, position, x]}\n"
      "  y: {op: MatMul, in: [k, w]}\noutputs: [y]\n",
      "m.yaml"));
  const Plan plan = ModelPlanner(model, take_devices(read_cluster("dgx-a100"), 1), {}).plan(Level::kSpeed, "auto");
  const auto holders = peak_holders(plan);
  const std::map<std::string, Bytes> by_name(holders.begin(), holders.end());
  EXPECT_EQ(by_name.at("caches"), 8 * 4 * 32 * 16 * 4);
  EXPECT_EQ(by_name.at("weights"), 16 * 16 * 4);
}

}  // namespace
}  // namespace shardplan
