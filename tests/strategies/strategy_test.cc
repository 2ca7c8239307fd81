#include "strategies/strategy.h"

#include <gtest/gtest.h>

#include "operators/catalogue.h"
#include "tests/support/operations.h"

namespace shardplan {
namespace {

const DeviceMesh kMesh = DeviceMesh::parse("x=2, y=4");

std::vector<AxisRef> axes(const std::string& text) {
  return parse_layout("[{" + text + "}]", kMesh).dimensions[0].parts[0].axes;
}

/// A strategy that gives each named factor its axes.
Strategy strategy(const Operation& op, const std::vector<std::pair<std::string, std::string>>& factors) {
  Strategy result;
  result.factors.resize(op.rule.factors.size());
  for (const auto& [name, text] : factors) result.factors[*op.rule.find(name)] = axes(text);
  return result;
}

TEST(StrategyTest, LayoutsFollowFromTheFactors) {
  const Operation matmul = operation_of("MatMul", {}, {{16, 8}, {8, 4}});
  const Strategy cut = strategy(matmul, {{"m", "x"}, {"k", "y"}});
  EXPECT_EQ(to_string(operand_layout(matmul, cut, kMesh, 0), kMesh), "[{x}, {y}]");
  EXPECT_EQ(to_string(operand_layout(matmul, cut, kMesh, 1), kMesh), "[{y}, {}]");
  EXPECT_EQ(to_string(result_layout(matmul, cut, kMesh, 0), kMesh), "[{x}, {}] unreduced={y}");
  EXPECT_EQ(local_extents(matmul, cut), (std::vector<std::int64_t>{8, 2, 4}));
  // Device 5 is x=1, y=1: rows 8 to 15, the second quarter of the summed factor.
  const std::vector<Box> found = boxes(matmul, cut, kMesh, 5);
  EXPECT_EQ(found[*matmul.rule.find("m")], (Box{8, 16, 16}));
  EXPECT_EQ(found[*matmul.rule.find("k")], (Box{2, 4, 8}));
}

TEST(StrategyTest, WhatIsNotLegalIsNamed) {
  const Operation matmul = operation_of("MatMul", {}, {{16, 6}, {6, 4}});
  EXPECT_EQ(check_strategy(matmul, strategy(matmul, {{"m", "x"}, {"n", "y"}}), kMesh), "");
  EXPECT_EQ(check_strategy(matmul, strategy(matmul, {{"k", "y"}}), kMesh),
            "k of size 6 cannot be split into 4 by {y}: pieces of 2 would leave 1 of them empty");
  EXPECT_EQ(check_strategy(matmul, strategy(matmul, {{"m", "x"}, {"n", "x"}}), kMesh), "axis x is used twice");
  const Operation add = operation_of("Add", {}, {{16}, {16}});
  Strategy partial = strategy(add, {});
  partial.partial = axes("x");
  partial.group = 7;
  EXPECT_EQ(check_strategy(add, partial, kMesh), "a partial operand does not pass through this operator");
}

TEST(StrategyTest, UnequalPiecesAreTrueIntervals) {
  const Operation matmul = operation_of("MatMul", {}, {{16, 10}, {10, 7}});
  const Strategy cut = strategy(matmul, {{"k", "y"}, {"n", "x"}});
  EXPECT_EQ(check_strategy(matmul, cut, kMesh), "");
  EXPECT_TRUE(is_uneven(matmul, cut));
  EXPECT_EQ(local_extents(matmul, cut), (std::vector<std::int64_t>{16, 3, 4}));
  EXPECT_EQ(to_string(operand_layout(matmul, cut, kMesh, 1), kMesh), "[{y}, {x}]");
  // Device 7 is x=1, y=3: the last of 3, 3, 3, 1 rows and the last of 4, 3 columns.
  const std::vector<Box> found = boxes(matmul, cut, kMesh, 7);
  EXPECT_EQ(found[*matmul.rule.find("k")], (Box{9, 10, 10}));
  EXPECT_EQ(found[*matmul.rule.find("n")], (Box{4, 7, 7}));
}

TEST(StrategyTest, WhatCannotBeCutUnequallySaysWhy) {
  const Operation flat = operation_of("Reshape", {{"shape", std::vector<std::int64_t>{15, 8}}}, {{5, 3, 8}});
  const std::string& first = flat.rule.factors[flat.rule.operands[0][0].factors[0]].name;
  EXPECT_EQ(
      check_strategy(flat, strategy(flat, {{first, "x"}}), kMesh),
      first +
          " of size 5 cannot be split into 2 by {x}: it shares a dimension with other factors, so its pieces must be "
          "equal");
  const Operation conv = operation_of("Conv2D", {{"pad_mode", std::string("same")}}, {{2, 3, 15, 16}, {4, 3, 5, 5}});
  const std::string& rows = conv.rule.factors[conv.rule.operands[0][2].window->output].name;
  EXPECT_EQ(
      check_strategy(conv, strategy(conv, {{rows, "x"}}), kMesh),
      rows + " of size 15 cannot be split into 2 by {x}: it is read through a window, whose pieces must be equal");
  const Operation attention = operation_of("FlashAttention", {{"input_layout", std::string("BSND")}},
                                           {{2, 7, 4, 8}, {2, 7, 4, 8}, {2, 7, 4, 8}});
  EXPECT_EQ(check_strategy(attention, strategy(attention, {{"s", "x"}}), kMesh), "");
  EXPECT_EQ(check_strategy(attention, strategy(attention, {{"t", "x"}}), kMesh),
            "t of size 7 cannot be split into 2 by {x}: its pieces are counted and must be equal");
}

TEST(StrategyTest, AWholeAxisIsItsPiecesOneAfterTheOther) {
  const Operation relu = operation_of("ReLU", {}, {{16}});
  const std::string factor = relu.rule.factors[0].name;
  EXPECT_TRUE(sharded_alike(strategy(relu, {{factor, "y"}}), strategy(relu, {{factor, "y:(1)2, y:(2)2"}})));
  EXPECT_FALSE(sharded_alike(strategy(relu, {{factor, "y"}}), strategy(relu, {{factor, "y:(2)2, y:(1)2"}})));
}

TEST(StrategyTest, WindowsNeedHalos) {
  const Operation conv = operation_of("Conv2D", {{"pad_mode", std::string("same")}}, {{2, 3, 16, 16}, {4, 3, 5, 5}});
  const TensorWalk& image = conv.rule.operands[0];
  Strategy cut;
  cut.factors.resize(conv.rule.factors.size());
  cut.factors[image[2].window->output] = axes("y");
  const std::vector<Halo> found = halos(conv, cut, kMesh);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].dimension, 2u);
  EXPECT_EQ(found[0].before, 2);
  EXPECT_EQ(found[0].after, 2);
  EXPECT_FALSE(runs_in_phases(conv, cut));
}

TEST(StrategyTest, ACutNormalisedFactorRunsInPhases) {
  const Operation softmax = operation_of("Softmax", {}, {{16, 16}});
  std::size_t normalised = 0;
  while (softmax.rule.factors[normalised].kind != FactorKind::kNormalised) ++normalised;
  Strategy cut;
  cut.factors.resize(softmax.rule.factors.size());
  EXPECT_FALSE(runs_in_phases(softmax, cut));
  cut.factors[normalised] = axes("x");
  EXPECT_TRUE(runs_in_phases(softmax, cut));
  cut.factors[normalised][0].size = 1;  // as on a mesh of one device
  EXPECT_FALSE(runs_in_phases(softmax, cut));
}

}  // namespace
}  // namespace shardplan
