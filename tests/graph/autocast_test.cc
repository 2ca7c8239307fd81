#include "graph/autocast.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

// Types and operators. That a plan of such a graph computes what one device does is tested in
// tests/simulator/autocast_proof_test.cc.

OperatorGraph read(const std::string& text, const std::string& autocast = "bf16") {
  return read_model_text("shardplan: 1\n" + (autocast.empty() ? "" : fmt::format("autocast: {}\n", autocast)) + text,
                         "a.yaml")
      .graph;
}

DataType type_of(const OperatorGraph& graph, const std::string& tensor) {
  return graph.tensor(*graph.find_tensor(tensor)).type.dtype;
}

std::string operands_of(const OperatorGraph& graph, const std::string& name) {
  std::string text;
  for (const TensorId id : graph.operators()[*graph.find_operator(name)].operands) {
    text += (text.empty() ? "" : " ") + std::string(graph.tensor(id).name);
  }
  return text;
}

std::size_t num_casts(const OperatorGraph& graph) {
  std::size_t count = 0;
  for (const OperatorId id : graph.operators().ids()) count += graph.operation(id).type->name == "Cast" ? 1 : 0;
  return count;
}

TEST(AutocastTest, ProductsAreNarrowAndNormsAndLossesAreWide) {
  const OperatorGraph graph = read(R"(
dims: {B: 4, H: 8}
inputs: {x: [B, H], labels: {shape: [B], dtype: i32}}
operators:
  norm: {block: nn.LayerNorm, in: x}
  up:   {block: nn.Dense, in: norm, out_channels: 4*H}
  act:  {op: GeLU, in: up}
  down: {block: nn.Dense, in: act, out_channels: H, has_bias: false}
  add:  {op: Add, in: [x, down]}
  loss: {block: nn.SoftmaxCrossEntropyWithLogits, in: [down, labels], sparse: true, reduction: mean}
)");
  EXPECT_EQ(type_of(graph, "up.weight"), DataType::kF32);
  EXPECT_EQ(type_of(graph, "norm"), DataType::kF32);
  EXPECT_EQ(type_of(graph, "up.matmul"), DataType::kBF16);
  EXPECT_EQ(type_of(graph, "act"), DataType::kBF16);
  EXPECT_EQ(type_of(graph, "add"), DataType::kF32);
  EXPECT_EQ(type_of(graph, "loss"), DataType::kF32);
  EXPECT_EQ(operands_of(graph, "up.matmul"), "norm.layer_norm.bf16 up.weight.bf16");
  EXPECT_EQ(operands_of(graph, "up.bias_add"), "up.matmul up.bias.bf16");
  EXPECT_EQ(operands_of(graph, "down.matmul"), "act down.weight.bf16");
  EXPECT_EQ(operands_of(graph, "add"), "x down.matmul") << "read in both types, without a Cast";
  EXPECT_EQ(num_casts(graph), 5u) << "and that of the logits";
}

TEST(AutocastTest, ReadersShareACast) {
  const OperatorGraph graph = read(R"(
inputs: {x: [4, 8]}
parameters: {w: [8, 8]}
operators:
  a: {op: MatMul, in: [x, w]}
  b: {op: MatMul, in: [x, w], transpose_b: true}
  c: {op: Add, in: [x, a]}
)",
                                   "f16");
  EXPECT_EQ(operands_of(graph, "a"), "x.f16 w.f16");
  EXPECT_EQ(operands_of(graph, "b"), "x.f16 w.f16");
  EXPECT_EQ(operands_of(graph, "c"), "x a");
  EXPECT_EQ(num_casts(graph), 2u);
}

TEST(AutocastTest, EveryOperatorOfThePolicyIsInF32) {
  for (const char* op :
       {"{op: Softmax, in: a}", "{op: LogSoftmax, in: a}", "{op: Exp, in: a}", "{op: Expm1, in: a}", "{op: Log, in: a}",
        "{op: Log1p, in: a}", "{op: Pow, in: [a, 2]}", "{op: Square, in: a}", "{op: Reciprocal, in: a}",
        "{op: Rsqrt, in: a}", "{op: Softplus, in: a}", "{op: CumSum, in: a, axis: 0}",
        "{op: ReduceSum, in: a, axis: 0}", "{op: L2Normalize, in: a, axis: 1}", "{op: SmoothL1Loss, in: [a, a]}",
        "{block: nn.LayerNorm, in: a}", "{block: nn.RMSNorm, in: a}"}) {
    const OperatorGraph graph = read(
        "inputs: {x: [4, 8], w: [8, 8]}\noperators:\n  a: {op: MatMul, in: [x, w]}\n  y: " + std::string(op) + "\n");
    EXPECT_EQ(type_of(graph, "y"), DataType::kF32) << op;
    EXPECT_EQ(num_casts(graph), 3u) << op;
  }
  for (const char* op :
       {"{op: ReLU, in: a}", "{op: ReduceMean, in: a, axis: 0}", "{op: Transpose, in: a, perm: [1, 0]}",
        "{op: Dropout, in: a, keep_prob: 0.9}", "{op: ReduceMax, in: a, axis: 0}"}) {
    const OperatorGraph graph = read(
        "inputs: {x: [4, 8], w: [8, 8]}\noperators:\n  a: {op: MatMul, in: [x, w]}\n  y: " + std::string(op) + "\n");
    EXPECT_EQ(type_of(graph, "y"), DataType::kBF16) << op;
    EXPECT_EQ(num_casts(graph), 2u) << op;
  }
}

TEST(AutocastTest, ABatchNormKeepsItsStatisticsInF32) {
  const OperatorGraph graph = read(R"(
inputs: {x: [4, 8, 6, 6]}
operators:
  conv: {block: nn.Conv2d, in: x, out_channels: 8, kernel_size: 3}
  norm: {block: nn.BatchNorm2d, in: conv}
)");
  EXPECT_EQ(type_of(graph, "norm"), DataType::kBF16);
  EXPECT_EQ(type_of(graph, "norm.batch_norm.mean"), DataType::kF32);
  EXPECT_EQ(type_of(graph, "norm.batch_norm.moving_mean"), DataType::kF32);
  EXPECT_EQ(operands_of(graph, "norm.batch_norm"),
            "conv.conv2d norm.gamma norm.beta norm.moving_mean norm.moving_variance");
}

TEST(AutocastTest, WhatRefusesSeveralTypesGetsTheWidest) {
  const OperatorGraph graph = read(R"(
inputs: {x: [4, 8], w: [8, 8]}
operators:
  a: {op: MatMul, in: [x, w]}
  y: {op: Concat, in: [x, a], axis: 0}
)");
  EXPECT_EQ(type_of(graph, "y"), DataType::kF32);
  EXPECT_EQ(operands_of(graph, "y"), "x a.f32");
}

TEST(AutocastTest, StoredTensorsKeepTheirTypes) {
  const OperatorGraph graph = read(R"(
inputs: {x: [2, 4, 1, 8], w: [8, 8], at: {shape: [2], dtype: i32}}
parameters: {cache: {shape: [2, 4, 16, 8], requires_grad: false}}
operators:
  a: {op: MatMul, in: [x, w]}
  y: {op: KVCacheScatterUpdate, in: [cache, at, a]}
)");
  EXPECT_EQ(type_of(graph, "y"), DataType::kF32);
  EXPECT_EQ(operands_of(graph, "y"), "cache at a.f32");
}

TEST(AutocastTest, DoublesAreLeftAlone) {
  const OperatorGraph graph = read(R"(
dtype: f64
inputs: {x: [4, 8], w: [8, 8]}
operators:
  a: {op: MatMul, in: [x, w]}
)");
  EXPECT_EQ(type_of(graph, "a"), DataType::kF64);
  EXPECT_EQ(num_casts(graph), 0u);
}

// A strategy of the user's for an operand is that of the Cast through which it is read, so that a weight sharded for its
// product is not stored whole for the Cast.
TEST(AutocastTest, ACastHasTheStrategyOfItsReader) {
  const OperatorGraph graph = read(R"(
inputs: {x: [4, 8], w: [8, 8]}
operators:
  a: {op: MatMul, in: [x, w], in_strategy: [[1, 2], [2, 4]]}
)");
  const GraphOperator& cast = graph.operators()[*graph.find_operator("w.bf16")];
  ASSERT_EQ(cast.strategy->in.size(), 1u);
  EXPECT_EQ(cast.strategy->in[0].tuple, (std::vector<std::int64_t>{2, 4}));
  EXPECT_TRUE(cast.strategy->out.empty());
}

TEST(AutocastTest, AnotherTypeIsAnError) {
  for (const char* type : {"f32", "half", "[bf16]"}) {
    try {
      read("inputs: {x: [4]}\noperators:\n  y: {op: ReLU, in: x}\n", type);
      FAIL() << type;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("; expected f16 or bf16"), std::string::npos) << error.what();
    }
  }
}

TEST(AutocastTest, MixedPrecisionBesideItIsAnError) {
  try {
    read(
        "inputs: {x: [4]}\noperators:\n  l: {op: ReduceMean, in: x}\nloss: l\n"
        "training: {optimizer: sgd, mixed_precision: bf16}\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("autocast casts f32 weights"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace shardplan
