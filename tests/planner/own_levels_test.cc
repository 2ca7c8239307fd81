#include "planner/search/own_levels.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

// Two layers, of which the second may have its own level.
std::string layers_with(const std::string& settings) {
  return R"(
shardplan: 1
inputs: {x: [64, 1024]}
blocks:
  layer:
    inputs: {x: [64, 1024]}
    operators:
      up:   {block: nn.Dense, in: x, out_channels: 2048}
      gelu: {op: GeLU, in: up}
      down: {block: nn.Dense, in: gelu, out_channels: 1024}
operators:
  first:  {block: layer, in: x}
  second: {block: layer, in: first)" +
         settings + R"(}
  loss:   {op: ReduceSum, in: second}
loss: loss
training: {optimizer: adam}
parallel: {mesh: {x: 2, y: 4}}
)";
}

Plan planned_layers(const std::string& settings, Level level) {
  auto model = std::make_shared<const Model>(read_model_text(layers_with(settings), "m.yaml"));
  PlanOptions options;
  options.level = level;
  options.work_limit = 100'000'000;
  options.overlap = false;  // with overlap the fastest plan stores its weights in pieces too
  return ModelPlanner(model, job_cluster(*model, {}).cluster, options).plan(level, "auto");
}

/// One device's bytes of the stored tensors of a block.
Bytes stored_by(const Plan& plan, const std::string& block) {
  Bytes bytes = 0;
  for (const Binding& given : plan.program.given) {
    if (plan.graph->tensor(given.tensor).name.starts_with(block + ".")) bytes += plan.program.values[given.value].bytes;
  }
  return bytes;
}

TEST(OwnLevelsTest, ABlockIsSearchedAtItsLevelAndTheRestStays) {
  const Plan fast = planned_layers("", Level::kSpeed);
  const Plan mixed = planned_layers(", level: 1", Level::kSpeed);
  EXPECT_LT(stored_by(mixed, "second"), stored_by(fast, "second"));
  EXPECT_EQ(stored_by(mixed, "first"), stored_by(fast, "first"));
  for (const OperatorId op : fast.graph->operators().ids()) {
    if (fast.graph->operators()[op].scope.str().starts_with("first")) {
      EXPECT_EQ(mixed.strategies[op], fast.strategies[op]) << fast.graph->operators()[op].name;
    }
  }
  EXPECT_GE(mixed.time.step(), fast.time.step());
  EXPECT_EQ(mixed.notices,
            std::vector<std::string>{"second is searched separately at level 1, and the rest of the model at level 2"});
}

TEST(OwnLevelsTest, TheLevelOfTheWholeModelIsNoSearchOfItsOwn) {
  const Plan plan = planned_layers(", level: 1", Level::kMemory);
  EXPECT_EQ(plan.strategies, planned_layers("", Level::kMemory).strategies);
  EXPECT_TRUE(plan.notices.empty());
}

}  // namespace
}  // namespace shardplan
