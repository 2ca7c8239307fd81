#include "model/blocks/template_library.h"

#include <gtest/gtest.h>

#include "graph/folded_names.h"
#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(TemplateLibraryTest, RepeatedBlocksAreTypedOnceAndNamedEach) {
  const Model model = read(R"(shardplan: 1
dims: {B: 4, H: 8, L: 3, F: 4*H}
inputs: {x: [B, H]}
blocks:
  layer:
    inputs: {x: [B, H]}
    parameters: {scale: [H]}
    operators:
      up:   {block: nn.Dense, in: x, out_channels: F, has_bias: false}
      down: {block: nn.Dense, in: up, out_channels: H, has_bias: false}
      out:  {op: Mul, in: [down, scale]}
operators:
  layers: {block: layer, in: x, repeat: L}
  sum:    {op: Add, in: [layers, layers.0]}
  tied:   {op: MatMul, in: [sum, layers.1.up.weight], transpose_b: true}
)");
  EXPECT_EQ(outline(model.graph),
            "layers.0.up.matmul = MatMul(x, layers.0.up.weight) [4, 32]\n"
            "layers.0.down.matmul = MatMul(layers.0.up.matmul, layers.0.down.weight) [4, 8]\n"
            "layers.0.out = Mul(layers.0.down.matmul, layers.0.scale) [4, 8]\n"
            "layers.1.up.matmul = MatMul(layers.0.out, layers.1.up.weight) [4, 32]\n"
            "layers.1.down.matmul = MatMul(layers.1.up.matmul, layers.1.down.weight) [4, 8]\n"
            "layers.1.out = Mul(layers.1.down.matmul, layers.1.scale) [4, 8]\n"
            "layers.2.up.matmul = MatMul(layers.1.out, layers.2.up.weight) [4, 32]\n"
            "layers.2.down.matmul = MatMul(layers.2.up.matmul, layers.2.down.weight) [4, 8]\n"
            "layers.2.out = Mul(layers.2.down.matmul, layers.2.scale) [4, 8]\n"
            "sum = Add(layers.2.out, layers.0.out) [4, 8]\n"
            "tied = MatMul(sum, layers.1.up.weight) [4, 32]\n");
  const OperatorGraph& graph = model.graph;
  const GraphOperator& op = operator_of(graph, "layers.1.up.matmul");
  EXPECT_EQ(folded_name(op.name), "layers.*.up.matmul");
  EXPECT_EQ(op.scope, "layers-CellList/1-layer/up-Dense");
  EXPECT_EQ(op.place.line, 9);
  EXPECT_EQ(graph.find_tensor("layers"), graph.find_tensor("layers.2.out"));  // a block's name is its result's
  EXPECT_EQ(graph.find_tensor("layers.0"), graph.find_tensor("layers.0.out"));
  EXPECT_EQ(graph.operations().size(), 4u);
  EXPECT_EQ(model.repeat_dims, std::vector<std::string>{"L"});
  EXPECT_EQ(model.free_dims, (std::vector<std::string>{"B", "H", "L"}));
}

TEST(TemplateLibraryTest, AllResultsOfACopyAreTheFirstInputsOfTheNext) {
  const Model model = read(R"(shardplan: 1
inputs: {a: [4], b: [4, 8], c: [4, 8]}
blocks:
  layer:
    inputs: {text: [4], image: [4, 8], time: [4, 8]}
    outputs: [words, both]
    operators:
      words: {op: ReLU, in: text}
      wide:  {op: ExpandDims, in: words, axis: 1}
      sum:   {op: Add, in: [image, wide]}
      both:  {op: Mul, in: [sum, time]}
operators:
  layers: {block: layer, in: [a, b, c], repeat: 2}
  early:  {op: Tanh, in: layers.0.words}
  late:   {op: Add, in: [layers.both, layers.1.both]}
outputs: [early, late, layers.words]
)");
  EXPECT_EQ(outline(model.graph),
            "layers.0.words = ReLU(a) [4]\n"
            "layers.0.wide = ExpandDims(layers.0.words) [4, 1]\n"
            "layers.0.sum = Add(b, layers.0.wide) [4, 8]\n"
            "layers.0.both = Mul(layers.0.sum, c) [4, 8]\n"
            "layers.1.words = ReLU(layers.0.words) [4]\n"
            "layers.1.wide = ExpandDims(layers.1.words) [4, 1]\n"
            "layers.1.sum = Add(layers.0.both, layers.1.wide) [4, 8]\n"
            "layers.1.both = Mul(layers.1.sum, c) [4, 8]\n"
            "early = Tanh(layers.0.words) [4]\n"
            "late = Add(layers.1.both, layers.1.both) [4, 8]\n");
}

}  // namespace
}  // namespace shardplan
