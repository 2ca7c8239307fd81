#include "graph/batch_factors.h"

#include <gtest/gtest.h>

#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

OperatorGraph transposed_model(const std::string& batch) {
  return planned_graph(read_model_text("shardplan: 1\ninputs: {x: [" + batch +
                                           ", 4]}\noperators:\n"
                                           "  fc:   {block: nn.Dense, in: x, out_channels: 2, has_bias: false}\n"
                                           "  turn: {op: Transpose, in: fc, perm: [1, 0]}\n"
                                           "  loss: {op: ReduceMean, in: turn}\n"
                                           "loss: loss\ntraining: {optimizer: sgd}\n",
                                       "m.yaml"));
}

/// The factor's name, or "" if the operator has no batch.
std::string batch_factor(const OperatorGraph& graph, const std::string& name) {
  const OperatorId op = *graph.find_operator(name);
  const std::optional<std::uint32_t> factor = find_batch(graph).factors[op];
  return factor ? graph.operation(op).rule.factors[*factor].name : "";
}

TEST(BatchFactorsTest, TheBatchIsFollowedThroughTheGraph) {
  const OperatorGraph graph = transposed_model("16");
  EXPECT_EQ(batch_factor(graph, "fc.matmul"), "m");
  EXPECT_EQ(batch_factor(graph, "turn"), "a");
  // After the transposition it is no longer a leading dimension.
  EXPECT_EQ(batch_factor(graph, "loss"), "");
  // A weight's gradient sums over it, and an update does not have it.
  EXPECT_EQ(batch_factor(graph, "grad.fc.matmul.MatMul"), "k");
  EXPECT_EQ(batch_factor(graph, "update.fc.weight.ApplyGradientDescent"), "");
}

TEST(BatchFactorsTest, TheLeadingFactorIsTheMajorOneOrThatOfTheWindow) {
  EXPECT_EQ(leading_factor({}), std::nullopt);
  EXPECT_EQ(leading_factor({DimensionWalk{}, DimensionWalk{{3}, {}}}), std::nullopt);
  EXPECT_EQ(leading_factor({DimensionWalk{{2, 1}, {}}}), 2u);
  EXPECT_EQ(leading_factor({DimensionWalk{{}, Window{4, 5}}}), 4u);
}

}  // namespace
}  // namespace shardplan
