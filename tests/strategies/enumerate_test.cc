#include "strategies/enumerate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "operators/catalogue.h"
#include "tests/support/operations.h"

namespace shardplan {
namespace {

const DeviceMesh kCubeMesh = DeviceMesh::parse("x=2, y=2, z=2");

std::vector<AxisRef> pieces(const DeviceMesh& mesh) {
  std::vector<AxisRef> result;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) result.push_back(mesh.whole(axis));
  return result;
}

TEST(EnumerateTest, ABatchedMatmulHasSixToThePowerOfThePieces) {
  const Operation matmul = operation_of("BatchMatMul", {}, {{8, 8, 8, 8}, {8, 8, 8, 8}});
  const Candidates candidates = enumerate_strategies(matmul, kCubeMesh, pieces(kCubeMesh), {});
  EXPECT_EQ(candidates.strategies.size(), 216u);
  EXPECT_TRUE(candidates.complete);
}

TEST(EnumerateTest, AllCandidatesAreLegalAndDifferentAndTheFirstCutsTheFirstFactor) {
  const Operation add = operation_of("Add", {}, {{16, 8}, {16, 8}});
  PartialGroups groups;
  groups.linear.assign(add.rule.linear.size(), 1);
  const Candidates candidates = enumerate_strategies(add, kCubeMesh, pieces(kCubeMesh), groups);
  // Each of three pieces shards rows or columns, carries a partial sum through, or replicates.
  EXPECT_EQ(candidates.strategies.size(), 64u);
  std::set<std::string> texts;
  for (const Strategy& strategy : candidates.strategies) {
    EXPECT_EQ(check_strategy(add, strategy, kCubeMesh), "");
    std::string text = to_string(result_layout(add, strategy, kCubeMesh, 0), kCubeMesh);
    EXPECT_TRUE(texts.insert(text).second) << text;
  }
  EXPECT_EQ(to_string(result_layout(add, candidates.strategies.front(), kCubeMesh, 0), kCubeMesh), "[{x, y, z}, {}]");
  EXPECT_EQ(to_string(result_layout(add, candidates.strategies.back(), kCubeMesh, 0), kCubeMesh), "[{}, {}]");
}

TEST(EnumerateTest, WhatDoesNotDivideIsNoCandidate) {
  const Operation relu = operation_of("ReLU", {}, {{6}});  // 6 can be split into 2, not into 4
  EXPECT_EQ(enumerate_strategies(relu, kCubeMesh, pieces(kCubeMesh), {}).strategies.size(), 4u);  // x, y, z or none
}

struct UnevenCase {
  std::int64_t size;
  std::vector<std::int64_t> cuts;  // possible numbers of pieces with three axes of 2
};
const UnevenCase kUnevenCases[] = {
    {24, {1, 2, 4, 8}}, {50257, {1, 2, 4, 8}},  // none is equal
    {30, {1, 2, 4, 8}},                         // 8 8 8 6; seven of 4 and 2
    {12, {1, 2, 4}},                            // in 8 pieces of 2 two would be empty
    {10, {1, 2, 4}},                            // 3 3 3 1: a sixth of the buffers is padding
    {6, {1, 2}},                                // in 4 pieces of 2 one would be empty
    {3, {1}},                                   // 2 1: a quarter is padding
};

TEST(EnumerateTest, UnequalPiecesAreTriedWhereNoEqualOnesAreAsMany) {
  for (const UnevenCase& c : kUnevenCases) {
    const Operation relu = operation_of("ReLU", {}, {{c.size}});
    std::set<std::int64_t> found, even;
    for (const Strategy& strategy :
         enumerate_strategies(relu, kCubeMesh, pieces(kCubeMesh), {}, UnevenCuts::kWhereNothingElseFits).strategies) {
      EXPECT_EQ(check_strategy(relu, strategy, kCubeMesh), "");
      found.insert(num_pieces(strategy.factors[0]));
    }
    for (const Strategy& strategy : enumerate_strategies(relu, kCubeMesh, pieces(kCubeMesh), {}).strategies) {
      EXPECT_FALSE(is_uneven(relu, strategy));
    }
    EXPECT_EQ(found, std::set<std::int64_t>(c.cuts.begin(), c.cuts.end())) << c.size;
  }
}

TEST(EnumerateTest, TheNextCutSaysWhatItWouldTake) {
  const auto next = [](std::int64_t size, std::int64_t devices, UnevenCuts uneven) -> std::string {
    const auto found = next_cut(operation_of("ReLU", {}, {{size}}), 0, devices, uneven);
    return found ? fmt::format("{}: {}", found->pieces, found->reason) : "";
  };
  constexpr UnevenCuts kUneven = UnevenCuts::kWhereNothingElseFits;
  EXPECT_EQ(next(12, 8, kUneven), "8: pieces of 2 would leave 2 of them empty");
  EXPECT_EQ(next(12, 8, UnevenCuts::kNone), "8: 8 does not divide it");
  EXPECT_EQ(next(28, 8, kUneven), "8: pieces of 4 would leave 1 of them empty");
  EXPECT_EQ(next(30, 8, kUneven), "");
  EXPECT_EQ(next(28, 8, UnevenCuts::kNone), "8: 8 does not divide it");
  EXPECT_EQ(next(9, 8, kUneven), "4: pieces of 3 would leave 1 of them empty");
  EXPECT_EQ(next(3, 2, kUneven), "2: 25 % of pieces of 2 would be padding");
  EXPECT_EQ(next(4, 8, kUneven), "8: there are 4");
  const Operation pool = operation_of(
      "MaxPool", {{"kernel_size", std::vector<std::int64_t>{2}}, {"strides", std::vector<std::int64_t>{2}}},
      {{1, 1, 12, 12}});
  const auto rows = next_cut(pool, *pool.rule.find("h"), 4, kUneven);
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->reason, "4 does not divide it: it is read through a window, whose pieces must be equal");
}

TEST(EnumerateTest, ACutSummedFactorLeavesThePartialSum) {
  const Operation matmul = operation_of("MatMul", {}, {{32, 64}, {64, 16}});
  Strategy strategy;
  strategy.factors = {{kCubeMesh.whole(0)}, {kCubeMesh.whole(1), kCubeMesh.whole(2)}, {}};
  EXPECT_EQ(matmul.rule.factors[1].name, "k");
  EXPECT_EQ(to_string(operand_layout(matmul, strategy, kCubeMesh, 0), kCubeMesh), "[{x}, {y, z}]");
  EXPECT_EQ(to_string(operand_layout(matmul, strategy, kCubeMesh, 1), kCubeMesh), "[{y, z}, {}]");
  EXPECT_EQ(to_string(result_layout(matmul, strategy, kCubeMesh, 0), kCubeMesh), "[{x}, {}] unreduced={y, z}");
  EXPECT_EQ(local_extents(matmul, strategy), (std::vector<std::int64_t>{16, 16, 16}));
  EXPECT_EQ(boxes(matmul, strategy, kCubeMesh, 5), (std::vector<Box>{{16, 32, 32}, {16, 32, 64}, {0, 16, 16}}));
}

}  // namespace
}  // namespace shardplan
