#include "graph/recompute.h"

#include <gtest/gtest.h>

#include "model/planned_model.h"
#include "model/read_model.h"
#include "tests/support/marked_model.h"

namespace shardplan {
namespace {

OperatorGraph graph_of(const std::string& training) {
  return planned_graph(read_model_text(layered_model(training), "layered.yaml"));
}

std::vector<std::string> copies(const OperatorGraph& graph) {
  std::vector<std::string> names;
  for (const GraphOperator& op : graph.operators()) {
    if (op.is_copy) names.push_back(op.name);
  }
  return names;
}

TEST(RecomputeTest, CopiesWhatBackwardNeedsBlockByBlockInTheOrderOfTheBackwardPass) {
  const OperatorGraph graph = graph_of(", recompute: [layers.*]");
  std::vector<std::string> expected;  // the last linear map and the sum are not recomputed
  for (const char* layer : {"2", "1", "0"}) {
    for (const char* name : {"norm.layer_norm", "up.matmul", "up.bias_add", "gelu", "drop"}) {
      expected.push_back(std::string("recompute.layers.") + layer + "." + name);
    }
  }
  EXPECT_EQ(copies(graph), expected);
  // The block's input is kept: one copy reads it directly, and the other copies read each other.
  const auto op = [&](const std::string& name) -> const GraphOperator& {
    return graph.operators()[*graph.find_operator(name)];
  };
  EXPECT_EQ(op("recompute.layers.1.norm.layer_norm").operands[0], *graph.find_tensor("layers.0.add"));
  EXPECT_EQ(op("recompute.layers.1.gelu").operands[0], *graph.find_tensor("recompute.layers.1.up.bias_add"));
  EXPECT_EQ(op("recompute.layers.1.gelu").forward, graph.find_operator("layers.1.gelu"));
  EXPECT_EQ(op("recompute.layers.1.gelu").pass, Pass::kBackward);
  // A block's copies run when its own backward pass begins, not before.
  const auto position = [&](const std::string& name) { return graph.find_operator(name)->value(); };
  EXPECT_LT(position("recompute.layers.2.drop"), position("recompute.layers.1.norm.layer_norm"));
  for (const GraphOperator& backward : graph.operators()) {
    if (backward.is_copy || !backward.forward) continue;
    if (graph.operators()[*backward.forward].recompute_scope != "layers.2") continue;
    EXPECT_LT(position(backward.name), position("recompute.layers.1.norm.layer_norm")) << backward.name;
  }
}

TEST(RecomputeTest, BackwardReadsNothingFromInsideAMarkedBlock) {
  const OperatorGraph graph = graph_of(", recompute: [layers.*]");
  for (const GraphTensor& tensor : graph.tensors()) {
    if (!tensor.producer) continue;
    const GraphOperator& producer = graph.operators()[*tensor.producer];
    if (producer.pass != Pass::kForward || producer.recompute_scope.empty()) continue;
    const bool leaves = tensor.name.ends_with(".add");
    for (const Reader& reader : tensor.readers) {
      EXPECT_TRUE(leaves || graph.operators()[reader.op].pass == Pass::kForward) << tensor.name;
    }
  }
}

TEST(RecomputeTest, WhatIsKeptAnywayIsNotMadeAgain) {
  // The gradient of GeLU, outside the block, keeps the one result of the linear map.
  EXPECT_TRUE(copies(graph_of(", recompute: [layers.*.up]")).empty());
  // Nothing in the backward pass reads the result of GeLU, since Dropout keeps its mask.
  EXPECT_TRUE(copies(graph_of(", recompute: [layers.*.gelu]")).empty());
  // But its mask is recomputed.
  EXPECT_EQ(copies(graph_of(", recompute: [layers.1.drop]")), std::vector<std::string>{"recompute.layers.1.drop"});
  EXPECT_TRUE(copies(graph_of("")).empty());
}

// As MindSpore's Primitive.recompute and JAX's policies: whoever reads the result in the backward pass reads a copy.
TEST(RecomputeTest, AnOperatorThatIsMarkedByItselfKeepsNothing) {
  const OperatorGraph graph = graph_of(", recompute: [layers.*.drop, layers.*.gelu, layers.*.norm.layer_norm]");
  std::vector<std::string> expected;  // where they are needed: for the gradients of down, then of up
  for (const char* layer : {"2", "1", "0"}) {
    for (const char* name : {"gelu", "drop", "norm.layer_norm"}) {
      expected.push_back(std::string("recompute.layers.") + layer + "." + name);
    }
  }
  EXPECT_EQ(copies(graph), expected);
  for (const GraphTensor& tensor : graph.tensors()) {
    const bool is_marked = tensor.producer && graph.operators()[*tensor.producer].pass == Pass::kForward &&
                           !graph.operators()[*tensor.producer].recompute_scope.empty();
    for (const Reader& reader : tensor.readers) {
      EXPECT_TRUE(!is_marked || graph.operators()[reader.op].pass == Pass::kForward) << tensor.name;
    }
  }
  const auto op = [&](const std::string& name) -> const GraphOperator& {
    return graph.operators()[*graph.find_operator(name)];
  };
  // What is not marked is kept: the linear map's result, which GeLU's copy reads.
  EXPECT_EQ(op("recompute.layers.1.gelu").operands[0], *graph.find_tensor("layers.1.up.bias_add"));
  EXPECT_EQ(op("recompute.layers.1.drop").operands[0], *graph.find_tensor("recompute.layers.1.gelu"));
}

TEST(RecomputeTest, ABlockThatReadsAMarkedOperatorReadsItsCopy) {
  const OperatorGraph graph = planned_graph(read_model_text(R"(
shardplan: 1
dims: {B: 8, H: 16}
inputs: {x: [B, H]}
blocks:
  powers: {inputs: {x: [B, H]}, operators: {t: {op: Tanh, in: x}, s: {op: Square, in: t}}}
operators:
  up:   {block: nn.Dense, in: x, out_channels: H}
  gelu: {op: GeLU, in: up}
  b:    {block: powers, in: gelu}
  loss: {op: ReduceSum, in: b}
loss: loss
training: {optimizer: sgd, recompute: [gelu, b]}
)",
                                                            "m.yaml"));
  EXPECT_EQ(copies(graph), (std::vector<std::string>{"recompute.gelu", "recompute.b.t"}));
  const GraphOperator& inner = graph.operators()[*graph.find_operator("recompute.b.t")];
  EXPECT_EQ(inner.operands[0], *graph.find_tensor("recompute.gelu"));
}

TEST(RecomputeTest, ARepeatThatIsMarkedMarksEachOfItsCopies) {
  EXPECT_EQ(copies(graph_of(", recompute: [layers]")), copies(graph_of(", recompute: [layers.*]")));
  // The outermost block counts.
  EXPECT_EQ(copies(graph_of(", recompute: [layers.*.up, layers.*]")), copies(graph_of(", recompute: [layers.*]")));
}

}  // namespace
}  // namespace shardplan
