#include "model/blocks/operator_typer.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(OperatorTyperTest, SeveralResultsHaveNames) {
  const Model model = read(R"(shardplan: 1
inputs: {x: [4, 6]}
operators:
  split: {op: Split, in: x, axis: 1, output_num: 2, out: [a, b]}
  drop:  {op: Dropout, in: a, keep_prob: 0.5}
  sum:   {op: Add, in: [drop, b]}
)");
  const OperatorGraph& graph = model.graph;
  EXPECT_EQ(outline(graph), "split = Split(x) [4, 3]\ndrop = Dropout(a) [4, 3]\nsum = Add(drop, b) [4, 3]\n");
  EXPECT_EQ(operator_of(graph, "drop").results.size(), 2u);
  EXPECT_TRUE(graph.find_tensor("drop.mask"));
}

TEST(OperatorTyperTest, AnOperatorThatCannotBeMadeSaysWhatItsInputsAre) {
  const auto hint = [](const std::string& operators) {
    try {
      read("shardplan: 1\ndtype: bf16\ninputs: {x: [4, 6], y: {shape: [6, 4], dtype: f32}}\noperators:\n" + operators);
    } catch (const InputError& error) {
      return error.diagnostics().at(0).message + " | " + error.diagnostics()[0].hint;
    }
    return std::string("none");
  };
  EXPECT_EQ(hint("  a: {op: MatMul, in: [x, y]}\n"),
            "a: MatMul: inputs are bf16 and f32; Cast one of them | x is bf16 [4, 6], y is f32 [6, 4]; without a dtype "
            "of its own a tensor is bf16 here (dtype, mixed_precision)");
  EXPECT_EQ(hint("  c: {op: Cast, in: x, dtype: f32}\n  a: {op: Add, in: [c, y]}\n"),
            "a: Add: shapes [4, 6] and [6, 4] do not fit: dimension 0 is 4 and 6 | c is f32 [4, 6], y is f32 [6, 4]");
}

}  // namespace
}  // namespace shardplan
