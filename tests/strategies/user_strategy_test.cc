#include "strategies/user_strategy.h"

#include <gtest/gtest.h>

#include "model/read_model.h"

namespace shardplan {
namespace {

const DeviceMesh kPcieMesh = DeviceMesh::parse("pcie=2, hccs=4");

std::vector<AxisRef> whole_axes() { return {kPcieMesh.whole(0), kPcieMesh.whole(1)}; }

/// fc: [64, 512] x [512, 128] -> [64, 128] -> ReLU.
OperatorGraph matmul_with(const std::string& strategies) {
  return read_model_text(
             "shardplan: 1\nmodel: m\ninputs: {x: [64, 512]}\nparameters: {w: [512, 128]}\noperators:\n  fc: {op: "
             "MatMul, "
             "in: [x, w]" +
                 strategies + "}\n  act: {op: ReLU, in: fc}\noutputs: [act]\n",
             "m.yaml")
      .graph;
}

std::string layout_of_operand(const OperatorGraph& graph, std::size_t operand) {
  const UserStrategies user = resolve_user_strategies(graph, kPcieMesh, whole_axes());
  const OperatorId fc = *graph.find_operator("fc");
  if (user.operators[fc].size() != 1) return "several";
  return to_string(operand_layout(graph.operation(fc), user.operators[fc][0], kPcieMesh, operand), kPcieMesh);
}

std::string faults(const std::string& strategies) {
  try {
    resolve_user_strategies(matmul_with(strategies), kPcieMesh, whole_axes());
  } catch (const InputError& error) {
    std::string text;
    for (const Diagnostic& diagnostic : error.diagnostics()) text += diagnostic.message + "|";
    return text;
  }
  return "";
}

TEST(UserStrategyTest, TuplesTakeConsecutivePiecesOfTheRowMajorRanks) {
  EXPECT_EQ(layout_of_operand(matmul_with(", in_strategy: [[2, 4], [4, 1]]"), 0), "[{pcie}, {hccs}]");
  EXPECT_EQ(layout_of_operand(matmul_with(", in_strategy: [[4, 2], [2, 1]]"), 0), "[{pcie, hccs:(1)2}, {hccs:(2)2}]");
  // Replication comes last: the pieces take the outer ranks.
  EXPECT_EQ(layout_of_operand(matmul_with(", in_strategy: [[2, 1], [1, 1]]"), 0), "[{pcie}, {}]");
  EXPECT_EQ(layout_of_operand(matmul_with(", in_strategy: [[1, 2], [2, 4]]"), 1), "[{pcie}, {hccs}]");
}

TEST(UserStrategyTest, LayoutsAndNullMeanWhatTheySay) {
  EXPECT_EQ(layout_of_operand(matmul_with(", in_strategy: [[{hccs}, {}], [{}, {pcie}]]"), 1), "[{}, {pcie}]");
  EXPECT_EQ(layout_of_operand(matmul_with(", in_strategy: [null, [1, 1]]"), 0), "[{pcie, hccs}, {}]");
}

TEST(UserStrategyTest, WhatIsNotSaidIsEnumeratedOverTheAxesLeft) {
  const OperatorGraph graph = matmul_with(", in_strategy: [[{pcie}, {}], []]");
  const UserStrategies user = resolve_user_strategies(graph, kPcieMesh, whole_axes());
  // n over hccs, or replicated over hccs.
  EXPECT_EQ(user.operators[*graph.find_operator("fc")].size(), 2u);
}

TEST(UserStrategyTest, AnOutStrategyOfMoreRowsIsTheReduceScatterOfTheSum) {
  const OperatorGraph graph = matmul_with(", in_strategy: [[2, 4], [4, 1]], out_strategy: [[8, 1]]");
  const UserStrategies user = resolve_user_strategies(graph, kPcieMesh, whole_axes());
  EXPECT_EQ(to_string(*user.requested[*graph.find_tensor("fc")], kPcieMesh), "[{pcie, hccs}, {}]");
}

TEST(UserStrategyTest, UnequalPiecesMustBeAllowedAndNotEmpty) {
  const auto resolve = [](const std::string& size, const std::string& entry, UnevenCuts uneven) -> std::string {
    const OperatorGraph graph = read_model_text("shardplan: 1\nmodel: m\ninputs: {x: [" + size +
                                                    ", 8]}\noperators:\n  act: {op: ReLU, in: x, " + "in_strategy: [" +
                                                    entry + "]}\noutputs: [act]\n",
                                                "m.yaml")
                                    .graph;
    try {
      const UserStrategies user = resolve_user_strategies(graph, kPcieMesh, whole_axes(), uneven);
      const OperatorId act = *graph.find_operator("act");
      return to_string(operand_layout(graph.operation(act), user.operators[act][0], kPcieMesh, 0), kPcieMesh);
    } catch (const InputError& error) {
      return error.diagnostics()[0].message;
    }
  };
  constexpr UnevenCuts kAllowed = UnevenCuts::kWhereNothingElseFits;
  EXPECT_EQ(resolve("30", "[8, 1]", kAllowed), "[{pcie, hccs}, {}]");
  EXPECT_EQ(resolve("30", "null", kAllowed), "[{pcie, hccs}, {}]");
  EXPECT_EQ(resolve("30", "[{hccs}, {}]", kAllowed), "[{hccs}, {}]");
  EXPECT_EQ(resolve("30", "[8, 1]", UnevenCuts::kNone),
            "act: in_strategy (8, 1) splits dimension 0 of x into 8, but its size is 30");
  EXPECT_EQ(resolve("30", "[{hccs}, {}]", UnevenCuts::kNone),
            "act: layout [{hccs}, {}] of x: dimension 0 of size 30 cannot be split into 4 by {hccs}");
  EXPECT_EQ(
      resolve("12", "[8, 1]", kAllowed),
      "act: in_strategy (8, 1) splits dimension 0 of x into 8, but its size is 12; pieces of 2 would leave 2 of them "
      "empty");
}

TEST(UserStrategyTest, FaultsAreThoseThatUsersKnow) {
  EXPECT_EQ(faults(", in_strategy: [[1, 1]]"), "fc: in_strategy has 1 entry, fc has 2 tensor inputs|");
  EXPECT_EQ(faults(", in_strategy: [[1, 1], [1]]"), "fc: entry 2 has 1 value, w has 2 dimensions|");
  EXPECT_EQ(faults(", in_strategy: [[1, 1], [1, 3]]"),
            "fc: in_strategy (1, 3) splits dimension 1 of w into 3, but its size is 128|");
  EXPECT_EQ(faults(", in_strategy: [[2, 8], [8, 1]]"), "fc: needs 16 devices (2 x 8), there are 8|");
  EXPECT_EQ(faults(", in_strategy: [[1, 4], [2, 1]]"), "fc: cuts x in 4 along the summed dimension but w in 2|");
  EXPECT_EQ(faults(", in_strategy: [[{pcie}, {}], [{}, {pcie}]]"), "fc: axis pcie is used twice|");
}

/// Ring attention cuts both over the same devices, and passes keys around.
TEST(UserStrategyTest, QueriesAndKeysAreNotCutOverTheSameDevices) {
  const auto fault_of = [](const std::string& entries) {
    const Model model = read_model_text(
        "shardplan: 1\nmodel: m\ninputs: {q: [1, 8, 64, 16], k: [1, 8, 64, 16], v: [1, 8, 64, 16]}\noperators:\n"
        "  at: {op: FlashAttention, in: [q, k, v], out: [o, lse], in_strategy: " +
            entries + "}\noutputs: [o]\n",
        "m.yaml");
    try {
      resolve_user_strategies(model.graph, kPcieMesh, whole_axes());
    } catch (const InputError& error) {
      EXPECT_EQ(error.diagnostics().size(), 1u);
      return error.diagnostics()[0].message + "; " + error.diagnostics()[0].hint;
    }
    return std::string("none");
  };
  const std::string hint =
      "; keys do not go around a ring of the devices that cut the queries: leave keys and values whole, and they are "
      "gathered, or cut them over other devices";
  EXPECT_EQ(fault_of(R"(["[{}, {}, {hccs}, {}]", "[{}, {}, {hccs}, {}]", "[{}, {}, {hccs}, {}]"])"),
            "at: axis hccs is used twice" + hint);
  EXPECT_EQ(fault_of("[[1, 1, 4, 1], [1, 1, 4, 1], [1, 1, 4, 1]]"), "at: needs 16 devices (4 x 4), there are 8" + hint);
  EXPECT_EQ(fault_of("[[1, 1, 4, 1], [1, 1, 1, 1], [1, 1, 1, 1]]"), "none");
  EXPECT_EQ(fault_of(R"(["[{}, {}, {hccs}, {}]", "[{}, {}, {pcie}, {}]", "[{}, {}, {pcie}, {}]"])"), "none");
}

}  // namespace
}  // namespace shardplan
