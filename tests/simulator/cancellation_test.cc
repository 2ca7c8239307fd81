#include "simulator/execute/cancellation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/operations.h"

namespace shardplan {
namespace {

/// x - y of four elements each, and what is added to the result when both have relative errors of up to a thousandth.
std::vector<double> errors_of_difference(const std::vector<double>& x, const std::vector<double>& y,
                                         const std::function<bool(std::size_t)>& is_rounded) {
  const Operation operation = operation_of("Sub", {}, {{4}, {4}}, DataType::kF64);
  std::vector<double> result(4);
  const Box box{0, 4, 4};
  const OperandView operands[] = {{x.data(), {4}, {0}}, {y.data(), {4}, {0}}};
  const ResultView view{result.data(), {4}};
  const KernelCall call{operation, std::span(&box, 1), operands, std::span(&view, 1), 0};
  operation.type->kernel(call);
  const std::vector<double> before = result;
  add_errors_of_terms(call, 1e-3, 7, is_rounded);
  for (std::size_t i = 0; i < 4; ++i) result[i] -= before[i];
  return result;
}
const auto kAllRounded = [](std::size_t) { return true; };

// 8 - 8: the result says nothing about the rounding errors; the terms do, with up to a thousandth of 8 each.
TEST(CancellationTest, ErrorsAreThoseOfTheTerms) {
  const std::vector<double> eights(4, 8.0);
  double most = 0;
  for (const double error : errors_of_difference(eights, eights, kAllRounded)) {
    EXPECT_LE(std::abs(error), 2 * 8e-3);
    most = std::max(most, std::abs(error));
  }
  EXPECT_GT(most, 1e-3);
}

TEST(CancellationTest, WhatDoesNotCancelStaysAsItIs) {
  const std::vector<double> eights(4, 8.0);
  EXPECT_EQ(errors_of_difference(eights, {7, 7, 7, 7}, kAllRounded), std::vector<double>(4, 0.0));
  // One large result is enough: its tensor's scale shows the errors.
  EXPECT_EQ(errors_of_difference(eights, {8, 8, 8, 0}, kAllRounded), std::vector<double>(4, 0.0));
}

TEST(CancellationTest, ExactOperandsHaveNoErrors) {
  const std::vector<double> eights(4, 8.0);
  EXPECT_EQ(errors_of_difference(eights, eights, [](std::size_t) { return false; }), std::vector<double>(4, 0.0));
  for (const double error : errors_of_difference(eights, eights, [](std::size_t i) { return i == 0; })) {
    EXPECT_GE(std::abs(error), 0.5 * 8e-3);  // every element gets between half and all of a thousandth
    EXPECT_LE(std::abs(error), 8e-3 * 1.0000001);
  }
}

TEST(CancellationTest, MasksAndCountsAreSmallIntegers) {
  const auto holds = [](std::vector<double> values) { return holds_small_integers(values); };
  EXPECT_TRUE(holds({}));
  EXPECT_TRUE(holds({0, 1, -2047}));
  EXPECT_FALSE(holds({0, 1, 2048}));
  EXPECT_FALSE(holds({0, 0.5}));
  EXPECT_FALSE(holds({0, std::nan("")}));
}

}  // namespace
}  // namespace shardplan
