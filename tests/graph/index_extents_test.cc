#include "graph/index_extents.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(IndexExtentsTest, IntegerInputsKnowWhatTheyIndex) {
  const Model gpt = read_model("configs/gpt2-small.yaml");
  EXPECT_EQ(tensor_of(gpt.graph, "tokens").index_extent, 50304);
  EXPECT_EQ(tensor_of(gpt.graph, "labels").index_extent, 50304);
  const Model model = read(R"(shardplan: 1
inputs: {ids: {shape: [4, 3], dtype: i32}, mask: {shape: [12], dtype: i32}, x: [7, 2]}
operators:
  flat: {op: Reshape, in: ids, shape: [12]}
  rows: {op: Gather, in: [x, flat]}
  hot:  {op: OneHot, in: flat, depth: 5}
  sum:  {op: Add, in: [flat, mask]}
outputs: [rows, hot, sum]
)");
  EXPECT_EQ(tensor_of(model.graph, "ids").index_extent, 5);  // the smaller of 7 and 5
  EXPECT_EQ(tensor_of(model.graph, "mask").index_extent, 0);
  EXPECT_EQ(tensor_of(model.graph, "x").index_extent, 0);
}

}  // namespace
}  // namespace shardplan
