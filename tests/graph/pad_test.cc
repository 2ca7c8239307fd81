#include "graph/pad.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/padded_pair.h"

namespace shardplan {
namespace {

// Which masks are inserted. That the numbers then equal those of the model without padding is tested by execution in
// tests/simulator/padding_test.cc.

struct MaskCase {
  const char* operators;
  std::vector<std::string> masks;  // "operand: value", before which operand
};
const MaskCase kMasks[] = {
    {"  y: {op: ReLU, in: x}\n", {}},
    {"  y: {op: Transpose, in: x, perm: [1, 0]}\n", {}},
    {"  y: {op: ReduceSum, in: x, axis: [1]}\n", {"x: 0"}},
    {"  y: {op: ReduceMax, in: x, axis: [1]}\n", {"x: -1e+30"}},
    {"  y: {op: Softmax, in: x}\n", {"x: -1e+30"}},
    // the smaller one of both operands
    {"  y: {op: MatMul, in: [x, w]}\n", {"w: 0"}},
    {"  y: {op: MatMul, in: [w, x], transpose_a: true, transpose_b: true}\n", {"w: 0"}},
    // sums of what is already 0 there need none: after a mask, after operators that keep 0
    {"  s: {op: Softmax, in: x}\n  y: {op: MatMul, in: [s, w]}\n", {"x: -1e+30"}},
    {"  p: {op: MatMul, in: [x, w]}\n  y: {op: MatMul, in: [x, w]}\n", {"w: 0"}},  // one mask for both
};

std::vector<std::string> masks_of(const OperatorGraph& graph) {
  std::vector<std::string> masks;
  for (const OperatorId id : graph.operators().ids()) {
    const Operation& operation = graph.operation(id);
    if (operation.type->name != "MaskPadding") continue;
    const double value = operation.number("value");
    masks.push_back(graph.tensor(graph.operators()[id].operands[0]).name + ": " +
                    (value == 0  ? "0"
                     : value < 0 ? "-1e+30"
                                 : "1e+30"));
    EXPECT_TRUE(value == 0 || std::abs(value) == 1e30);
  }
  return masks;
}

TEST(PadTest, MasksWhatWouldBeSeen) {
  for (const MaskCase& c : kMasks) {
    const std::string text = c.operators;
    const PaddedPair pair = padded_pair("inputs: {x: [A, C]}\nparameters: {w: [C, 2]}\noperators:\n" + text +
                                            (text.find("w") == std::string::npos ? "  z: {op: ReLU, in: w}\n" : ""),
                                        {{"A", 9}, {"C", 5}}, {{"C", 8}});
    const OperatorGraph graph = pad(pair.real, pair.padded);
    EXPECT_EQ(masks_of(graph), c.masks) << c.operators;
    // The model's operators are still there, under their names.
    for (const GraphOperator& op : pair.real.operators()) EXPECT_TRUE(graph.find_operator(op.name)) << op.name;
    const GraphTensor& x = graph.tensor(*graph.find_tensor("x"));
    ASSERT_TRUE(x.padding);
    EXPECT_EQ(*x.padding, (PaddedShape{{{9, 9}}, {{8, 5}}}));
  }
}

TEST(PadTest, LeavesAGraphWithoutPaddingAsItIs) {
  const PaddedPair pair =
      padded_pair("inputs: {x: [A, C]}\noperators:\n  y: {op: ReduceSum, in: x}\n", {{"A", 9}, {"C", 5}}, {});
  const OperatorGraph graph = pad(pair.real, pair.padded);
  EXPECT_EQ(graph.operators().size(), 1u);
  EXPECT_FALSE(graph.tensor(*graph.find_tensor("x")).padding);
}

// A mean over 8 positions, 5 of them real: the sum is divided by 8, and the result scaled by 8/5.
TEST(PadTest, MeansDivideByTheCountOfTheModel) {
  const PaddedPair pair = padded_pair("inputs: {x: [A, C]}\noperators:\n  y: {op: ReduceMean, in: x, axis: [1]}\n",
                                      {{"A", 9}, {"C", 5}}, {{"C", 8}});
  const OperatorGraph graph = pad(pair.real, pair.padded);
  EXPECT_EQ(masks_of(graph), std::vector<std::string>{"x: 0"});
  const GraphTensor& y = graph.tensor(*graph.find_tensor("y"));
  const GraphOperator& scaled = graph.operators()[*y.producer];
  EXPECT_EQ(graph.operation(*y.producer).type->name, "Mul");
  EXPECT_DOUBLE_EQ(graph.tensor(scaled.operands[1]).fill.value, 8.0 / 5);
}

// Numbers that the model computes from its sizes are those without padding.
TEST(PadTest, SizesInNumbersAreReal) {
  const PaddedPair pair = padded_pair(R"(
inputs: {x: [A, C]}
constants: {scale: 1/sqrt(C)}
operators:
  y: {op: Mul, in: [x, scale]}
)",
                                      {{"A", 9}, {"C", 16}}, {{"C", 25}});
  const OperatorGraph graph = pad(pair.real, pair.padded);
  const GraphOperator& y = graph.operators()[*graph.find_operator("y")];
  EXPECT_DOUBLE_EQ(graph.tensor(y.operands[1]).fill.value, 0.25);
}

TEST(PadTest, RefusesWhatNoMaskMakesExact) {
  const PaddedPair pair = padded_pair(R"(
inputs: {x: [A, C]}
operators:
  y: {op: Sort, in: x, axis: 1}
  z: {op: Sort, in: x, axis: 0}
)",
                                      {{"A", 9}, {"C", 5}}, {{"A", 12}, {"C", 8}});
  try {
    pad(pair.real, pair.padded);
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    ASSERT_EQ(error.diagnostics().size(), 6u);  // of both operators: its operand and its two results
    EXPECT_EQ(error.diagnostics()[0].message,
              "y (Sort) needs the whole of dimension 1 of x, 8 (5 + 3 padding); no mask makes that exact");
    EXPECT_EQ(error.diagnostics()[0].place.line, 7);
  }
}

}  // namespace
}  // namespace shardplan
