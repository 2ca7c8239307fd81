#include "graph/padded_positions.h"

#include <gtest/gtest.h>

#include "tests/support/padded_pair.h"

namespace shardplan {
namespace {

const char* const kHeads = R"(
inputs: {x: [B, H]}
operators:
  qkv:   {block: nn.Dense, in: x, out_channels: 3*heads*D, has_bias: false}
  apart: {op: Reshape, in: qkv, shape: [B, 3, heads, D]}
  turn:  {op: Transpose, in: apart, perm: [1, 0, 2, 3]}
  flat:  {op: Reshape, in: turn, shape: [3*B, heads*D]}
  out:   {block: nn.Dense, in: flat, out_channels: H, has_bias: false}
)";

PaddedShape of(const OperatorGraph& graph, const PaddedPositions& positions, const std::string& tensor) {
  return positions.tensors[*graph.find_tensor(tensor)];
}

// 3 of 4 heads of 8: also [3:3, 32:24] in the weight that produces q, k and v, although no operator there knows about
// heads.
TEST(PaddedPositionsTest, AreCarriedToWhereverADimensionIsRead) {
  const PaddedPair pair = padded_pair(kHeads, {{"B", 2}, {"H", 5}, {"heads", 3}, {"D", 8}}, {{"heads", 4}});
  const PaddedPositions found = find_padded_positions(pair.real, pair.padded);
  const PaddedDimension rows = {{2, 2}};
  const PaddedDimension qkv = {{3, 3}, {32, 24}};
  const PaddedDimension heads = {{4, 3}};
  const PaddedDimension one_of_three = {{32, 24}};
  const PaddedDimension depth = {{8, 8}};
  EXPECT_EQ(of(pair.padded, found, "qkv.matmul"), (PaddedShape{rows, qkv}));
  EXPECT_EQ(of(pair.padded, found, "apart"), (PaddedShape{rows, {{3, 3}}, heads, depth}));
  EXPECT_EQ(of(pair.padded, found, "turn"), (PaddedShape{{{3, 3}}, rows, heads, depth}));
  EXPECT_EQ(of(pair.padded, found, "flat"), (PaddedShape{{{6, 6}}, one_of_three}));
  const PaddedShape weight = of(pair.padded, found, "qkv.weight");
  EXPECT_TRUE(weight == (PaddedShape{{{5, 5}}, qkv}) || weight == (PaddedShape{qkv, {{5, 5}}}));
  for (const OperatorId op : pair.padded.operators().ids()) {
    EXPECT_EQ(found.factors[op].size(), pair.padded.operation(op).rule.factors.size());
    for (std::size_t f = 0; f < found.factors[op].size(); ++f) {
      EXPECT_EQ(padded_size(found.factors[op][f]), pair.padded.operation(op).rule.factors[f].size);
      EXPECT_EQ(real_size(found.factors[op][f]), pair.real.operation(op).rule.factors[f].size);
    }
  }
}

// Depth instead of heads: padding follows every head, so nothing can be joined.
TEST(PaddedPositionsTest, MinorFactorsLeavePaddingBetweenPositions) {
  const PaddedPair pair = padded_pair(kHeads, {{"B", 2}, {"H", 5}, {"heads", 3}, {"D", 6}}, {{"D", 8}});
  const PaddedPositions found = find_padded_positions(pair.real, pair.padded);
  EXPECT_EQ(of(pair.padded, found, "flat"), (PaddedShape{{{6, 6}}, {{3, 3}, {8, 6}}}));
  EXPECT_EQ(of(pair.padded, found, "qkv.matmul"), (PaddedShape{{{2, 2}}, {{9, 9}, {8, 6}}}));
}

TEST(PaddedPositionsTest, NothingIsPaddedAtEqualSizes) {
  const PaddedPair pair = padded_pair(kHeads, {{"B", 2}, {"H", 5}, {"heads", 3}, {"D", 8}}, {});
  const PaddedPositions found = find_padded_positions(pair.real, pair.padded);
  for (const PaddedShape& shape : found.tensors) EXPECT_FALSE(has_padding(shape));
}

std::string faults(const std::string& body, const std::map<std::string, std::int64_t>& real,
                   const std::map<std::string, std::int64_t>& padded) {
  const PaddedPair pair = padded_pair(body, real, padded);
  try {
    find_padded_positions(pair.real, pair.padded);
    return "";
  } catch (const InputError& error) {
    std::string text;
    for (const Diagnostic& fault : error.diagnostics()) text += fault.message + "\n";
    return text;
  }
}

TEST(PaddedPositionsTest, RefusesWhatTwoOperatorsNeedInTwoWays) {
  // Columns, of which 3 of 4 groups of 4 are real on one side, and 12 of 16 that are read as groups of 8 on the other.
  EXPECT_EQ(faults(R"(
inputs: {x: [A, G, 4]}
operators:
  flat: {op: Reshape, in: x, shape: [A, G*4]}
  turn: {op: Transpose, in: flat, perm: [1, 0]}
  back: {op: Reshape, in: turn, shape: [2, G*2, A]}
)",
                   {{"A", 2}, {"G", 3}}, {{"G", 4}}),
            "back (Reshape): a dimension of which 12 of 16 positions are no padding cannot be split or joined in this "
            "way\n");
  EXPECT_EQ(faults("inputs: {x: [A]}\noperators:\n  y: {op: ReLU, in: x}\n", {{"A", 4}}, {{"A", 3}}),
            "x: dimension 0 is 4 without padding and 3 with it\ny: dimension 0 is 4 without padding and 3 with it\n");
  EXPECT_EQ(faults("inputs: {x: [A]}\noperators:\n  y: {op: ReLU, in: x}\n", {{"A", 1}}, {{"A", 2}}),
            "x: dimension 0 is 1 without padding and 2 with it\ny: dimension 0 is 1 without padding and 2 with it\n");
}

TEST(PaddedPositionsTest, ResultsTakeThePaddingOfTheirOperands) {
  const PaddedPair pair = padded_pair(kHeads, {{"B", 2}, {"H", 5}, {"heads", 3}, {"D", 8}}, {{"heads", 4}});
  const PaddedPositions positions = find_padded_positions(pair.real, pair.padded);
  // Only inputs and parameters declare padding; the rest follows.
  OperatorGraphBuilder builder(pair.padded);
  for (const TensorId id : pair.padded.tensors().ids()) {
    if (pair.padded.tensor(id).kind == TensorKind::kResult) continue;
    builder.tensor(id).padding = positions.tensors[id];
  }
  const OperatorGraph found = with_padding_of_results(builder.build());
  std::size_t padded = 0;
  for (const TensorId id : found.tensors().ids()) {
    const auto& padding = found.tensor(id).padding;
    if (found.tensor(id).kind != TensorKind::kResult) continue;
    EXPECT_EQ(padding.has_value(), has_padding(positions.tensors[id])) << found.tensor(id).name;
    if (padding) {
      EXPECT_EQ(*padding, positions.tensors[id]) << found.tensor(id).name;
    }
    padded += padding ? 1 : 0;
  }
  EXPECT_EQ(padded, 4u);  // qkv, apart, turn, flat
}

}  // namespace
}  // namespace shardplan
