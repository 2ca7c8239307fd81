#include "model/blocks/block_tensors.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(BlockTensorsTest, BlocksInferTakeAndComputeDims) {
  const Model model = read(R"(shardplan: 1
dims: {N: 1000}
inputs: {x: [6, 10], y: [2, 10]}
blocks:
  halves:
    dims: {N: inferred, C: inferred, parts: given, half: C/parts}
    inputs: {x: [N, C]}
    operators: {a: {op: Reshape, in: x, shape: [N, parts, half]}}
operators:
  a: {block: halves, in: x, parts: 2}
  b: {block: halves, in: y, parts: 5}
outputs: [a, b]
)");
  EXPECT_EQ(outline(model.graph), "a.a = Reshape(x) [6, 2, 5]\nb.a = Reshape(y) [2, 5, 2]\n");
}

TEST(BlockTensorsTest, NumbersBecomeScalarsAndWordsStayNames) {
  const Model model = read(R"(shardplan: 1
dims: {D: 16}
dtype: bf16
inputs: {no: [4], n: {shape: [4], dtype: i32}}
constants: {scale: 1/sqrt(D), steps: {shape: [4], dtype: i32, fill: iota}}
operators:
  y:  {op: Mul, in: [no, scale]}
  on: {op: Add, in: [y, -0.5]}
  k:  {op: Add, in: [n, 1]}
  m:  {op: Add, in: [k, steps]}
outputs: [on, m]
)");
  const OperatorGraph& graph = model.graph;
  EXPECT_EQ(tensor_of(graph, "scale").fill, (Fill{Fill::Kind::kValue, 0.25}));
  EXPECT_EQ(tensor_of(graph, "on.in1").fill, (Fill{Fill::Kind::kValue, -0.5}));
  EXPECT_EQ(tensor_of(graph, "on.in1").type, (TensorType{{}, DataType::kBF16}));
  EXPECT_EQ(tensor_of(graph, "k.in1").type, (TensorType{{}, DataType::kI32}));
  EXPECT_EQ(tensor_of(graph, "steps").fill.kind, Fill::Kind::kIota);
  EXPECT_TRUE(tensor_of(graph, "on").is_output);
  EXPECT_FALSE(tensor_of(graph, "y").is_output);
}

}  // namespace
}  // namespace shardplan
