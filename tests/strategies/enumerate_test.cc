#include "strategies/enumerate.h"

#include <gtest/gtest.h>

#include <set>

#include "operators/catalogue.h"

namespace shardplan {
namespace {

const DeviceMesh kMesh = DeviceMesh::parse("x=2, y=2, z=2");

std::vector<AxisRef> pieces(const DeviceMesh& mesh) {
  std::vector<AxisRef> result;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) result.push_back(mesh.whole(axis));
  return result;
}

Operation operation(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  std::vector<TensorType> operands;
  for (const Shape& shape : shapes) operands.push_back({shape, DataType::kF32});
  return make_operation(*find_operator_type(type), attributes, operands);
}

TEST(EnumerateTest, ABatchedMatmulHasSixToThePowerOfThePieces) {
  const Operation matmul = operation("BatchMatMul", {}, {{8, 8, 8, 8}, {8, 8, 8, 8}});
  const Candidates candidates = enumerate_strategies(matmul, kMesh, pieces(kMesh), {});
  EXPECT_EQ(candidates.strategies.size(), 216u);
  EXPECT_TRUE(candidates.complete);
}

TEST(EnumerateTest, AllCandidatesAreLegalAndDifferentAndTheFirstCutsTheFirstFactor) {
  const Operation add = operation("Add", {}, {{16, 8}, {16, 8}});
  PartialGroups groups;
  groups.linear.assign(add.rule.linear.size(), 1);
  const Candidates candidates = enumerate_strategies(add, kMesh, pieces(kMesh), groups);
  // Each of three pieces: rows, columns, a partial sum carried through, or repeated.
  EXPECT_EQ(candidates.strategies.size(), 64u);
  std::set<std::string> texts;
  for (const Strategy& strategy : candidates.strategies) {
    EXPECT_EQ(check_strategy(add, strategy, kMesh), "");
    std::string text = to_string(result_layout(add, strategy, kMesh, 0), kMesh);
    EXPECT_TRUE(texts.insert(text).second) << text;
  }
  EXPECT_EQ(to_string(result_layout(add, candidates.strategies.front(), kMesh, 0), kMesh), "[{x, y, z}, {}]");
  EXPECT_EQ(to_string(result_layout(add, candidates.strategies.back(), kMesh, 0), kMesh), "[{}, {}]");
}

TEST(EnumerateTest, WhatDoesNotDivideIsNoCandidate) {
  const Operation relu = operation("ReLU", {}, {{6}});                                    // 6 can be cut in 2, not in 4
  EXPECT_EQ(enumerate_strategies(relu, kMesh, pieces(kMesh), {}).strategies.size(), 4u);  // x, y, z or none
}

TEST(EnumerateTest, ACutSummedFactorLeavesThePartialSum) {
  const Operation matmul = operation("MatMul", {}, {{32, 64}, {64, 16}});
  Strategy strategy;
  strategy.factors = {{kMesh.whole(0)}, {kMesh.whole(1), kMesh.whole(2)}, {}};
  EXPECT_EQ(matmul.rule.factors[1].name, "k");
  EXPECT_EQ(to_string(operand_layout(matmul, strategy, kMesh, 0), kMesh), "[{x}, {y, z}]");
  EXPECT_EQ(to_string(operand_layout(matmul, strategy, kMesh, 1), kMesh), "[{y, z}, {}]");
  EXPECT_EQ(to_string(result_layout(matmul, strategy, kMesh, 0), kMesh), "[{x}, {}] unreduced={y, z}");
  EXPECT_EQ(local_extents(matmul, strategy), (std::vector<std::int64_t>{16, 16, 16}));
  EXPECT_EQ(boxes(matmul, strategy, kMesh, 5), (std::vector<Box>{{16, 32, 32}, {16, 32, 64}, {0, 16, 16}}));
}

}  // namespace
}  // namespace shardplan
