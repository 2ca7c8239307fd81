#include "graph/padded_reads.h"

#include <gtest/gtest.h>

#include <cmath>

#include "operators/catalogue.h"
#include "tests/support/operations.h"
#include "tests/support/padded_pair.h"

namespace shardplan {
namespace {

using Dimensions = std::set<std::size_t>;

/// One operator y that reads x [A, C], with sizes 3 and 5 padded to 4 and 8.
struct ReadCase {
  const char* op;
  Dimensions combined;  // of x
  std::optional<double> neutral;
  const char* faults;
};
const ReadCase kReads[] = {
    {"{op: ReLU, in: x}", {}, {}, ""},
    {"{op: Transpose, in: x, perm: [1, 0]}", {}, {}, ""},
    {"{op: ReduceSum, in: x, axis: [1]}", {1}, {}, ""},
    {"{op: ReduceMax, in: x, axis: [0]}", {0}, -1e30, ""},
    {"{op: ReduceMin, in: x}", {0, 1}, 1e30, ""},
    {"{op: Softmax, in: x}", {1}, -1e30, ""},
    {"{op: Softmax, in: x, axis: 0}", {0}, -1e30, ""},
    {"{op: MatMul, in: [x, w]}", {1}, {}, ""},
    {"{op: Sort, in: x, axis: 1}",
     {1},
     {},
     "y (Sort) needs the whole of dimension 1 of x, 8 (5 + 3 padding); no mask makes that exact\n"
     "y (Sort) makes dimension 1 of y, 8 (5 + 3 padding); no mask makes that exact\n"
     "y (Sort) makes dimension 1 of y.indices, 8 (5 + 3 padding); no mask makes that exact\n"},
};

TEST(PaddedReadsTest, KnowsWhichPositionsAnOperatorCombines) {
  for (const ReadCase& c : kReads) {
    const PaddedPair pair =
        padded_pair("inputs: {x: [A, C]}\nparameters: {w: [C, 2]}\noperators:\n  y: " + std::string(c.op) + "\n" +
                        (std::string(c.op).find("w]") == std::string::npos ? "  z: {op: ReLU, in: w}\n" : ""),
                    {{"A", 3}, {"C", 5}}, {{"A", 4}, {"C", 8}});
    const PaddedPositions positions = find_padded_positions(pair.real, pair.padded);
    const PaddedReads reads(pair.real, pair.padded, positions);
    const OperatorId y = *pair.padded.find_operator("y");
    EXPECT_EQ(reads.combined(y, 0), c.combined) << c.op;
    const Neutral* neutral = reads.neutral(y, 0);
    EXPECT_EQ(neutral != nullptr, c.neutral.has_value()) << c.op;
    if (neutral != nullptr && c.neutral) {
      EXPECT_EQ(neutral->value, *c.neutral) << c.op;
    }
    std::vector<Diagnostic> found;
    reads.check(y, found);
    std::string faults;
    for (const Diagnostic& fault : found) faults += fault.message + "\n";
    EXPECT_EQ(faults, c.faults) << c.op;
  }
}

TEST(PaddedReadsTest, IndicesChooseAmongPositionsThatExist) {
  const PaddedPair pair = padded_pair(R"(
inputs: {tokens: {shape: [B, S], dtype: i32}}
parameters: {table: [V, H]}
operators:
  y: {op: Gather, in: [table, tokens], axis: 0}
)",
                                      {{"B", 2}, {"S", 3}, {"V", 5}, {"H", 4}}, {{"S", 4}, {"V", 8}});
  const PaddedPositions positions = find_padded_positions(pair.real, pair.padded);
  const PaddedReads reads(pair.real, pair.padded, positions);
  const OperatorId y = *pair.padded.find_operator("y");
  const ShardingRule& rule = pair.padded.operation(y).rule;
  std::size_t chosen = 0, padded = 0;
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    padded += reads.is_padded(y, f) ? 1 : 0;
    if (!reads.chooses(y, f)) continue;
    EXPECT_EQ(rule.factors[f].size, 8);
    EXPECT_EQ(reads.walked(y, 0, f), Dimensions{0});
    EXPECT_EQ(reads.walked(y, 1, f), Dimensions{});
    ++chosen;
  }
  EXPECT_EQ(chosen, 1u);
  EXPECT_EQ(padded, 2u);  // words and positions
}

TEST(PaddedReadsTest, CausalMasksHideThePadding) {
  const auto is_hidden = [](const char* fill, const char* queries) {
    const PaddedPair pair = padded_pair(std::string("inputs: {scores: [B, 2, ") + queries +
                                            ", S]}\nconstants: {mask: {shape: [" + queries + ", S], fill: " + fill +
                                            "}}\noperators:\n  masked: {op: Add, in: [scores, mask]}\n"
                                            "  y: {op: Softmax, in: masked}\n",
                                        {{"B", 2}, {"Q", 5}, {"S", 5}}, {{"Q", 6}, {"S", 8}});
    const PaddedPositions positions = find_padded_positions(pair.real, pair.padded);
    return PaddedReads(pair.real, pair.padded, positions).has_causal_scores(*pair.padded.find_operator("y"));
  };
  EXPECT_TRUE(is_hidden("causal", "S"));
  EXPECT_FALSE(is_hidden("0", "S"));       // every query sees every key
  EXPECT_FALSE(is_hidden("causal", "Q"));  // queries are padded differently from keys
}

// What is assumed to be 0 at 0 is 0 in the operator's own kernel.
TEST(PaddedReadsTest, OperatorsThatAreZeroAtZeroAre) {
  std::size_t zeros = 0, others = 0;
  for (const char* name : {"ReLU", "GeLU", "SiLU", "Tanh", "HardSwish", "Mish", "ELU", "LeakyReLU", "Abs", "Erf",
                           "Square", "Sqrt", "Sigmoid", "Exp", "Softplus", "Rsqrt", "Log"}) {
    const OperatorType* type = find_operator_type(name);
    ASSERT_NE(type, nullptr) << name;
    const Operation operation = operation_of(name, {}, {{3}}, DataType::kF64);
    const double x[3] = {0, 0, 0};
    double y[3] = {0, 0, 0};
    const Box box{0, 3, 3};
    const OperandView operand{x, {3}, {0}};
    const ResultView result{y, {3}};
    operation.type->kernel({operation, std::span(&box, 1), std::span(&operand, 1), std::span(&result, 1), 0});
    EXPECT_EQ(is_zero_at_zero(name), y[0] == 0) << name << "(0) is " << y[0];
    ++(y[0] == 0 ? zeros : others);
  }
  EXPECT_GT(zeros, 8u);
  EXPECT_GT(others, 4u);
}

}  // namespace
}  // namespace shardplan
