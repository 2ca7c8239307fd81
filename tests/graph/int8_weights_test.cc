#include "graph/int8_weights.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

constexpr char kForward[] = R"(
shardplan: 1
dtype: bf16
dims: {B: 4, H: 8}
inputs: {x: [B, H]}
parameters: {shared: [H, H]}
blocks:
  layer:
    inputs: {x: [B, H]}
    operators:
      up:  {block: nn.Dense, in: x, out_channels: H}
      act: {op: GeLU, in: up}
operators:
  layers: {block: layer, in: x, repeat: 2}
  again:  {op: MatMul, in: [layers, shared]}
  scaled: {op: Mul, in: [again, 2.0]}
  bias:   {op: Add, in: [shared, 1.0]}
  sum:    {op: ReduceSum, in: scaled}
)";

OperatorGraph stored_narrow(const std::string& marks) {
  return read_model_text(kForward + ("int8_weights: [" + marks + "]\n"), "i.yaml").graph;
}

std::string stored_type(const OperatorGraph& graph, const char* tensor) {
  return std::string(to_string(graph.tensor(*graph.find_tensor(tensor)).type.dtype));
}

TEST(Int8WeightsTest, MarkedWeightsAreStoredInAByteAndWidened) {
  const OperatorGraph graph = stored_narrow("layers.*");
  EXPECT_EQ(stored_type(graph, "layers.0.up.weight"), "i8");
  EXPECT_EQ(stored_type(graph, "layers.0.up.weight.bf16"), "bf16");
  EXPECT_EQ(stored_type(graph, "layers.0.up.bias"), "bf16");
  EXPECT_EQ(stored_type(graph, "layers.0.up.matmul"), "bf16");
  const OperatorId product = *graph.find_operator("layers.1.up.matmul");
  EXPECT_EQ(graph.tensor(graph.operators()[product].operands[1]).name, "layers.1.up.weight.bf16");
}

TEST(Int8WeightsTest, WithAutocastTheyAreWidenedToItsType) {
  std::string text = kForward;
  text.replace(text.find("dtype: bf16"), 11, "autocast: bf16");
  const OperatorGraph graph = read_model_text(text + "int8_weights: [\"layers.*\"]\n", "i.yaml").graph;
  EXPECT_EQ(stored_type(graph, "layers.0.up.weight"), "i8");
  EXPECT_EQ(stored_type(graph, "layers.0.up.weight.bf16"), "bf16");
  EXPECT_FALSE(graph.find_tensor("layers.0.up.weight.f32"));
  const OperatorId cast = *graph.find_operator("layers.0.up.weight.bf16");
  EXPECT_EQ(graph.operation(cast).operands[0].dtype, DataType::kI8);
  EXPECT_EQ(stored_type(graph, "shared"), "f32");
}

TEST(Int8WeightsTest, WhatElseReadsAWeightKeepsItWide) {
  EXPECT_EQ(stored_type(stored_narrow("again"), "shared"), "bf16");
}

std::string error_with(const std::string& more) {
  try {
    read_model_text(kForward + more, "i.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Int8WeightsTest, MarksWithoutEffectAreErrors) {
  EXPECT_NE(error_with("int8_weights: [scaled]\n").find("int8_weights: scaled has no product of a weight"),
            std::string::npos);
  EXPECT_NE(error_with("int8_weights: [layers]\nfp8: [layers.1]\n")
                .find("layers.1.up.matmul is marked by int8_weights and by fp8"),
            std::string::npos);
  EXPECT_NE(error_with("int8_weights: [layers]\noutputs: [bias]\nloss: sum\ntraining: {optimizer: sgd}\n")
                .find("is for inference"),
            std::string::npos);
}

}  // namespace
}  // namespace shardplan
