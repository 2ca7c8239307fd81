#include "costmodel/mindspore/mindspore_operator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "operators/catalogue.h"
#include "operators/operation.h"
#include "tests/support/operations.h"

namespace shardplan {
namespace {

std::vector<AxisRef> axes(const std::string& text, const DeviceMesh& mesh) {
  return parse_layout("[{" + text + "}]", mesh).dimensions[0].parts[0].axes;
}

/// On pcie=2, hccs=4. Text: one list of axes for each factor.
struct DigitsCase {
  const char* name;
  std::vector<const char*> factors;
  std::vector<std::int64_t> matrix;
  std::vector<std::vector<std::size_t>> of_factor;
};

TEST(MindSporeOperatorTest, ConsecutiveRanksOfOneFactorAreOneDigit) {
  const DeviceMesh mesh = DeviceMesh::parse("pcie=2, hccs=4");
  const DigitsCase kCases[] = {
      {"all devices", {"pcie, hccs"}, {8}, {{0}}},
      {"four, the rest repeats", {"pcie, hccs:(1)2"}, {4, 2}, {{0}}},
      {"the inner four", {"hccs"}, {2, 4}, {{1}}},
      {"two factors", {"pcie, hccs:(1)2", "hccs:(2)2"}, {4, 2}, {{0}, {1}}},
      {"the minor axis is the major factor", {"hccs", "pcie"}, {2, 4}, {{1}, {0}}},
      {"axes of one factor in the other order", {"hccs, pcie"}, {2, 4}, {{1, 0}}},
      {"a repeat between", {"pcie", "hccs:(2)2"}, {2, 2, 2}, {{0}, {2}}},
      {"nothing cut", {""}, {8}, {{}}},
  };
  for (const DigitsCase& test : kCases) {
    std::vector<std::vector<AxisRef>> factors;
    for (const char* text : test.factors) factors.push_back(axes(text, mesh));
    const DeviceDigits digits = device_digits(factors, mesh);
    EXPECT_EQ(digits.sizes, test.matrix) << test.name;
    EXPECT_EQ(digits.of_factor, test.of_factor) << test.name;
  }
}

TEST(MindSporeOperatorTest, LayoutsCountTheMatrixFromTheRight) {
  const DeviceMesh mesh = DeviceMesh::parse("pcie=2, hccs=4");
  const Operation matmul = operation_of("MatMul", {}, {{64, 32}, {32, 16}});
  Strategy strategy;
  strategy.factors.resize(matmul.rule.factors.size());
  strategy.factors[*matmul.rule.find("m")] = axes("pcie, hccs:(1)2", mesh);
  strategy.factors[*matmul.rule.find("n")] = axes("hccs:(2)2", mesh);
  const DeviceDigits digits = device_digits(strategy.factors, mesh);
  const auto layout = [&](const TensorWalk& walk, const Shape& shape) {
    return mindspore_layout(walk, shape, matmul.rule.factors, digits);
  };
  EXPECT_EQ(layout(matmul.rule.operands[0], {64, 32}), (MindSporeTensorLayout{{{4, 2}, {{1}, {}}}, {64, 32}}));
  EXPECT_EQ(layout(matmul.rule.operands[1], {32, 16}), (MindSporeTensorLayout{{{4, 2}, {{}, {0}}}, {32, 16}}));
  EXPECT_EQ(layout(matmul.rule.results[0], {64, 16}), (MindSporeTensorLayout{{{4, 2}, {{1}, {0}}}, {64, 16}}));
  // A dimension over two axes is two dimensions: the four of hccs, then the two of pcie within each.
  EXPECT_EQ(mindspore_layout(parse_layout("[{hccs, pcie}, {}]", mesh), mesh, {64, 3}),
            (MindSporeTensorLayout{{{2, 4}, {{0}, {1}, {}}}, {4, 16, 3}}));
}

TEST(MindSporeOperatorTest, AnOperatorsSlicesAreThoseOfItsStrategy) {
  const DeviceMesh mesh = DeviceMesh::parse("pcie=2, hccs=4");
  const Operation matmul = operation_of("MatMul", {}, {{64, 32}, {32, 16}});
  Strategy strategy;
  strategy.factors.resize(matmul.rule.factors.size());
  strategy.factors[*matmul.rule.find("k")] = axes("hccs", mesh);
  const MindSporeOperator op = mindspore_operator(matmul, strategy, std::vector<char>{0, 1});
  EXPECT_EQ(op.family, MindSporeFamily::kMatMul);
  EXPECT_EQ(op.operands[0].slice_bytes(), 64 * 8 * 4);
  EXPECT_FALSE(op.operands[0].is_parameter);
  EXPECT_TRUE(op.operands[1].is_parameter);
  // k in 4 pieces: the result is summed; the weight's gradient too, since its slices are replicated twice.
  const MindSporeFigures figures = mindspore_figures(op, 8);
  EXPECT_EQ(figures.forward_communication, 64 * 16 * 4);
  EXPECT_EQ(figures.backward_communication, 8 * 16 * 4);
}

TEST(MindSporeOperatorTest, CandidatesUseAllDevicesOrOne) {
  const DeviceMesh mesh = DeviceMesh::parse("pcie=2, hccs=4");
  const Operation matmul = operation_of("MatMul", {}, {{64, 32}, {32, 16}});
  const std::vector<Strategy> candidates = mindspore_candidates(matmul, mesh);
  EXPECT_EQ(candidates.size(), 10u + 1u);  // 8 as an ordered product of three powers of two; nothing sharded
  for (const Strategy& strategy : candidates) {
    std::int64_t cut = 1;
    for (const auto& factor : strategy.factors) cut *= num_pieces(factor);
    EXPECT_TRUE(cut == 8 || cut == 1);
    EXPECT_EQ(check_mindspore_strategy(matmul, strategy), "");
  }
  EXPECT_EQ(num_pieces(candidates[0].factors[0]), 8);  // the most pieces of the first factor come first
  // The dimension that a softmax normalises stays whole, and odd sizes cannot be split by powers of two.
  EXPECT_EQ(mindspore_candidates(operation_of("Softmax", {}, {{16, 64}}), mesh).size(), 2u);
  EXPECT_EQ(mindspore_candidates(operation_of("ReLU", {}, {{3, 5}}), mesh).size(), 1u);
  // Six devices: divisors.
  const DeviceMesh six = DeviceMesh::parse("x=6");
  EXPECT_EQ(mindspore_candidates(operation_of("ReLU", {}, {{6, 6}}), six).size(), 4u + 1u);  // 6x1, 3x2, 2x3, 1x6
}

TEST(MindSporeOperatorTest, SaysWhatMindSporeCannotCut) {
  const DeviceMesh mesh = DeviceMesh::parse("x=8");
  const Operation softmax = operation_of("Softmax", {}, {{16, 64}});
  Strategy strategy;
  for (const Factor& factor : softmax.rule.factors) {
    strategy.factors.push_back(factor.kind == FactorKind::kNormalised ? axes("x", mesh) : std::vector<AxisRef>());
  }
  EXPECT_NE(check_mindspore_strategy(softmax, strategy).find("which MindSpore keeps whole"), std::string::npos);
  for (auto& factor : strategy.factors) factor.clear();
  strategy.partial = axes("x", mesh);
  EXPECT_EQ(check_mindspore_strategy(softmax, strategy), "a partial sum goes through it");
}

}  // namespace
}  // namespace shardplan
