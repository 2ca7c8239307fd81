#include "planner/problem/expert_factors.h"

#include <gtest/gtest.h>

#include "graph/differentiate.h"
#include "model/read_model.h"
#include "tests/support/operations.h"

namespace shardplan {
namespace {

/// The dimension that numbers experts, by tensor; -1: none.
int dimension_of(const OperatorGraph& graph, const ExpertFactors& experts, const char* name) {
  const auto dimension = experts.dimensions[*graph.find_tensor(name)];
  return dimension ? *dimension : -1;
}

TEST(ExpertFactorsTest, AreFollowedFromStackedWeightsThroughTheStep) {
  const Model model = read_model_text(
      "shardplan: 1\n"
      "inputs: {x: [4, 8, 6], mix: [4, 8, 3]}\n"
      "parameters: {up: [3, 6, 5], down: [3, 5, 6], dense: [6, 6]}\n"
      "operators:\n"
      "  plain:  {op: MatMul, in: [x, dense]}\n"
      "  hidden: {op: Einsum, in: [plain, up], equation: \"bsd,edf->ebsf\"}\n"
      "  act:    {op: ReLU, in: hidden}\n"
      "  each:   {op: Einsum, in: [act, down], equation: \"ebsf,efd->ebsd\"}\n"
      "  turned: {op: Transpose, in: each, perm: [1, 2, 0, 3]}\n"
      "  y:      {op: Einsum, in: [turned, mix], equation: \"bsed,bse->bsd\"}\n"
      "  loss:   {op: ReduceMean, in: y}\n"
      "loss: loss\n"
      "training: {optimizer: momentum}\n",
      "m.yaml");
  const OperatorGraph graph = differentiate(model.graph, *model.training);
  const ExpertFactors experts = find_experts(graph);
  // The first product has one input for all experts.
  EXPECT_EQ(dimension_of(graph, experts, "up"), 0);
  EXPECT_EQ(dimension_of(graph, experts, "hidden"), 0);
  EXPECT_EQ(dimension_of(graph, experts, "down"), 0);
  EXPECT_EQ(dimension_of(graph, experts, "dense"), -1);
  EXPECT_EQ(dimension_of(graph, experts, "plain"), -1);
  EXPECT_EQ(dimension_of(graph, experts, "each"), 0);
  EXPECT_EQ(dimension_of(graph, experts, "turned"), 2);
  EXPECT_EQ(dimension_of(graph, experts, "y"), -1) << "a sum over experts";
  EXPECT_FALSE(experts.factors[*graph.find_operator("plain")]);
  EXPECT_TRUE(experts.factors[*graph.find_operator("y")]);
  EXPECT_TRUE(experts.factors[*graph.find_operator("update.down.ApplyMomentum")]);
  EXPECT_FALSE(experts.factors[*graph.find_operator("update.dense.ApplyMomentum")]);
}

/// MLA's projections, absorbed into queries and results of attention, have a matrix of each head.
TEST(ExpertFactorsTest, WeightsOfHeadsAreNone) {
  for (const bool is_fused : {true, false}) {
    SCOPED_TRACE(is_fused);
    const std::string attention = is_fused
                                      ? "  context: {op: FlashAttention, in: [q, keys, keys]}\n"
                                      : "  scores:  {op: Einsum, in: [q, keys], equation: \"bhsl,bgtl->bhst\"}\n"
                                        "  probs:   {op: Softmax, in: scores}\n"
                                        "  context: {op: Einsum, in: [probs, keys], equation: \"bhst,bgtl->bhsl\"}\n";
    const Model model = read_model_text(
        "shardplan: 1\n"
        "inputs: {x: [4, 2, 1, 6], keys: [4, 1, 8, 16], y: [4, 8, 6]}\n"
        "parameters: {w_uk: [2, 6, 16], w_uv: [2, 16, 6], up: [3, 6, 5]}\n"
        "operators:\n"
        "  q:       {op: Einsum, in: [x, w_uk], equation: \"bhsd,hdl->bhsl\"}\n" +
            attention +
            "  o:       {op: Einsum, in: [context, w_uv], equation: \"bhsl,hld->bhsd\"}\n"
            "  many:    {op: BroadcastTo, in: y, shape: [3, 4, 8, 6]}\n"
            "  experts: {op: Einsum, in: [many, up], equation: \"ebsd,edf->ebsf\"}\n",
        "m.yaml");
    const ExpertFactors experts = find_experts(model.graph);
    for (const char* name : {"w_uk", "w_uv", "q", "context", "o"}) {
      EXPECT_EQ(dimension_of(model.graph, experts, name), -1) << name;
    }
    EXPECT_FALSE(experts.factors[*model.graph.find_operator("o")]);
    EXPECT_EQ(dimension_of(model.graph, experts, "up"), 0);
    EXPECT_TRUE(experts.factors[*model.graph.find_operator("experts")]);
  }
}

TEST(ExpertFactorsTest, AStackedFactorIsInAllOperands) {
  const auto factor = [](const char* equation, std::vector<Shape> shapes) {
    Attributes attributes{{"equation", std::string(equation)}};
    const Operation operation = operation_of("Einsum", attributes, shapes);
    const auto found = stacked_factor(operation.rule, 1);
    return found ? operation.rule.factors[*found].name : "";
  };
  EXPECT_EQ(factor("ebd,edf->ebf", {{3, 4, 6}, {3, 6, 5}}), "e");
  EXPECT_EQ(factor("bd,edf->ebf", {{4, 6}, {3, 6, 5}}), "");
  EXPECT_EQ(factor("bd,df->bf", {{4, 6}, {6, 5}}), "");
  EXPECT_EQ(factor("ebd,edf->ebf", {{1, 4, 6}, {1, 6, 5}}), "") << "one expert";
}

}  // namespace
}  // namespace shardplan
