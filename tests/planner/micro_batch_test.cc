#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/read_model.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

/// Two linear maps sharded over the batch only, so that their gradients are sums over all devices.
std::string mlp(const std::string& training) {
  return R"(
shardplan: 1
model: mlp
dims: {B: 65536, H: 1024}
inputs: {x: [B, H], y: [B, H]}
operators:
  up:     {block: nn.Dense, in: x, out_channels: H, has_bias: false}
  relu:   {op: ReLU, in: up}
  down:   {block: nn.Dense, in: relu, out_channels: H, has_bias: false}
  error:  {op: Sub, in: [down, y]}
  square: {op: Square, in: error}
  loss:   {op: ReduceMean, in: square}
loss: loss
training: {optimizer: adamw)" +
         training + R"(}
parallel: {mesh: {x: 8}}
strategies:
  up.matmul:   {in_strategy: [[8, 1], [1, 1]]}
  down.matmul: {in_strategy: [[8, 1], [1, 1]]}
)";
}

ModelPlanner planning(const std::string& text, std::optional<Bytes> capacity = std::nullopt) {
  PlanOptions options;
  options.capacity = capacity;
  options.overlap = false;  // or reductions cost nothing beside so long kernels
  return {std::make_shared<const Model>(read_model_text(text, "mlp.yaml")), read_cluster("ascend-910"), options};
}

/// The layouts of the two sums of gradients.
std::vector<TensorLayout> sums(const Plan& plan) {
  std::vector<TensorLayout> layouts;
  for (const Instruction& instruction : plan.program.instructions) {
    const bool is_weight = instruction.kind == InstructionKind::kOperator && instruction.operation->type->accumulates &&
                           !instruction.operation->operands[0].shape.empty();
    if (is_weight) layouts.push_back(plan.program.values[instruction.outputs[0]].layout);
  }
  return layouts;
}

std::int64_t runs_of_reductions(const Plan& plan) {
  std::int64_t runs = 0;
  for (const Instruction& instruction : plan.program.instructions) {
    const bool reduces =
        instruction.kind == InstructionKind::kCollective && (instruction.step->kind == CollectiveKind::kReduceScatter ||
                                                             instruction.step->kind == CollectiveKind::kAllReduce);
    if (reduces && plan.program.values[instruction.inputs[0]].type.shape.size() == 2) runs += instruction.runs;
  }
  return runs;
}

TEST(MicroBatchTest, GradientsAreReducedOnceBehindTheLastMicroBatch) {
  const Plan plan = planning(mlp(", micro_batches: 8"), kUnlimitedBytes).plan(Level::kSpeed, "auto");
  ASSERT_TRUE(plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible);
  ASSERT_EQ(sums(plan).size(), 2u);
  for (const TensorLayout& layout : sums(plan)) EXPECT_EQ(layout.partial.size(), 1u) << "each device sums its own";
  EXPECT_EQ(runs_of_reductions(plan), 2);
}

TEST(MicroBatchTest, WhereMemoryIsShortTheSumsAreCutAndReducedWithEachMicroBatch) {
  // Weights and their states take 4 * 4 MiB each, replicated or sharded; replicated sums another 4 each.
  const ModelPlanner large = planning(mlp(", micro_batches: 8"), kUnlimitedBytes);
  const Bytes smallest = large.smallest().memory.peak;
  const Plan plan = planning(mlp(", micro_batches: 8"), smallest + (Bytes{1} << 20)).plan(Level::kSpeed, "auto");
  ASSERT_TRUE(plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible);
  for (const TensorLayout& layout : sums(plan)) {
    EXPECT_TRUE(layout.partial.empty());
    EXPECT_EQ(num_shards(layout), 8);
  }
  EXPECT_EQ(runs_of_reductions(plan), 16);
  EXPECT_GT(plan.time.communication, large.plan(Level::kSpeed, "auto").time.communication);
}

TEST(MicroBatchTest, TheStepCostsWhatItsMicroBatchesDo) {
  const Plan plan = planning(mlp(", micro_batches: 8"), kUnlimitedBytes).plan(Level::kSpeed, "auto");
  Picoseconds loop = 0, rest = 0;
  const std::size_t end = plan.program.num_in_micro_batch();
  for (std::size_t i = 0; i < plan.program.instructions.size(); ++i) {
    (i < end ? loop : rest) += plan.program.instructions[i].time;
  }
  EXPECT_EQ(plan.time.additive(), 8 * loop + rest);
  EXPECT_EQ(plan.cost, (LevelValue{Level::kSpeed, plan.time.additive()}));
}

TEST(MicroBatchTest, WhatCannotBeDividedIsAnErrorInTheFile) {
  const auto fault = [](const std::string& text) {
    try {
      planning(text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(fault(mlp(", micro_batches: 7")),
            "mlp.yaml:14:11: error: training: micro_batches is 7, which does not divide B = 65536");
  std::string text = mlp(", micro_batches: 8");
  text.replace(text.find("B: 65536"), 8, "B: 512");
  text.replace(text.find("{x: [B, H]"), 10, "{x: [512, H]");
  EXPECT_EQ(
      fault(text),
      "mlp.yaml:14:11: error: training: micro_batches: the first dimension of x is 512; expected the name of a dim, "
      "the batch, so that it can be divided");
}

}  // namespace
}  // namespace shardplan
