#include "simulator/execute/near_ties.h"

#include <gtest/gtest.h>

#include "operators/catalogue.h"
#include "operators/phases.h"

namespace shardplan {
namespace {

using Numbers = std::vector<double>;

Operation comparing(const char* type, const Attributes& attributes, const Shape& shape) {
  return make_operation(*find_operator_type(type), attributes, {{shape, DataType::kF64}});
}

/// Positions that the operator takes, as its last result says.
Numbers taken(const Operation& operation, const Numbers& x) {
  std::vector<Box> boxes;
  for (const Factor& factor : operation.rule.factors) boxes.push_back({0, factor.size, factor.size});
  std::vector<Numbers> values;
  for (const TensorType& result : operation.results) {
    values.emplace_back(static_cast<std::size_t>(num_elements(result.shape)), 0.0);
  }
  std::vector<ResultView> results;
  for (std::size_t i = 0; i < values.size(); ++i) results.push_back({values[i].data(), operation.results[i].shape});
  const Shape& shape = operation.operands[0].shape;
  const std::vector<OperandView> operands = {{x.data(), shape, Shape(shape.size(), 0)}};
  run_operation({operation, boxes, operands, results, 0});
  return values.back();
}

Numbers taken_after(const Operation& operation, const Numbers& exact, Numbers disturbed, double absolute = 0) {
  reverse_near_ties(operation, exact, absolute, 1e-12, disturbed);
  return taken(operation, disturbed);
}

TEST(NearTiesTest, AreDecidedTheOtherWayRound) {
  const Operation top = comparing("TopK", {{"k", std::int64_t{3}}}, {2, 4});
  const Numbers exact = {3.5, 1.5, 2.5, 2.5 + 1e-15, 4.5, 3.5, 2.5, 1.5};
  EXPECT_EQ(taken(top, exact), (Numbers{0, 3, 2, 0, 1, 2}));
  EXPECT_EQ(taken_after(top, exact, exact), (Numbers{0, 2, 3, 0, 1, 2}));
  // Errors have made them equal.
  EXPECT_EQ(taken_after(top, exact, {3.5, 1.5, 2.5, 2.5, 4.5, 3.5, 2.5, 1.5}), (Numbers{0, 2, 3, 0, 1, 2}));
  EXPECT_EQ(taken_after(top, exact, exact, 1.1), (Numbers{1, 2, 3, 3, 2, 1})) << "all are near each other";
}

TEST(NearTiesTest, EqualNumbersCountToo) {
  const Numbers exact = {1.5, 0.5, 1.5};
  EXPECT_EQ(taken_after(comparing("ArgMax", {}, {3}), exact, exact), (Numbers{2}));
  EXPECT_EQ(taken_after(comparing("Sort", {{"descending", true}}, {3}), exact, exact), (Numbers{2, 0, 1}));
  EXPECT_EQ(taken_after(comparing("Sort", {}, {3}), exact, exact), (Numbers{1, 2, 0}));
}

TEST(NearTiesTest, LinesRunAlongTheAxis) {
  const Numbers exact = {1.5, 2.5, 1.5, 0.5};  // [2, 2]: the first column is tied
  EXPECT_EQ(taken_after(comparing("ArgMax", {{"axis", std::int64_t{0}}}, {2, 2}), exact, exact), (Numbers{1, 0}));
  EXPECT_EQ(taken_after(comparing("ArgMax", {{"axis", std::int64_t{1}}}, {2, 2}), exact, exact), (Numbers{1, 0}));
}

TEST(NearTiesTest, WhatIsRoundedNowhereKeepsItsOrder) {
  const Operation largest = comparing("ArgMax", {}, {3});
  EXPECT_EQ(taken_after(largest, {2, 2, 1}, {2, 2, 1}), (Numbers{0})) << "counts";
  EXPECT_EQ(taken_after(largest, {0, -0.5, 0}, {0, -0.5, 0}), (Numbers{0})) << "of a ReLU";
  EXPECT_EQ(taken_after(largest, {-1e9, -1e9, -2e9}, {-1e9, -1e9, -2e9}), (Numbers{0})) << "masks";
}

}  // namespace
}  // namespace shardplan
