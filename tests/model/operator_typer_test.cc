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

}  // namespace
}  // namespace shardplan
