#include "model/blocks/custom_operators.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(CustomOperatorsTest, OwnOperatorsFollowTheirRule) {
  const Model model = read(R"(shardplan: 1
inputs: {x: [2, 3, 4]}
parameters: {w: [4, 5]}
custom_operators: {Mix: {rule: "b s h, h f -> b s f", factors: {h: max}, flops: 6*b*s*h*f}}
operators: {mix: {op: Mix, in: [x, w]}}
)");
  const Operation& operation = model.graph.operation(*model.graph.find_operator("mix"));
  EXPECT_EQ(operation.results, (std::vector<TensorType>{{{2, 3, 5}, DataType::kF32}}));
  EXPECT_EQ(operation.rule.factors[2].reduction, Reduction::kMax);
  EXPECT_EQ(operation.type->flops_per_point, 6);
  EXPECT_EQ(operation.type->kernel, nullptr);
}

}  // namespace
}  // namespace shardplan
