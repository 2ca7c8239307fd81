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
  // After the transposition it is the second dimension.
  EXPECT_EQ(batch_factor(graph, "loss"), "b");
  EXPECT_TRUE(find_batch(graph).has_batch[*graph.find_tensor("fc")]);
  EXPECT_FALSE(find_batch(graph).has_batch[*graph.find_tensor("turn")]);
  // A weight's gradient sums over it, and an update does not have it.
  EXPECT_EQ(batch_factor(graph, "grad.fc.matmul.MatMul"), "k");
  EXPECT_EQ(batch_factor(graph, "update.fc.weight.ApplyGradientDescent"), "");
}

// They index the sequence, also where there is only one, whose batch no factor indexes.
TEST(BatchFactorsTest, PositionsAreNoBatch) {
  const auto batch_of_sum = [](const std::string& dims) {
    return batch_factor(planned_graph(read_model_text("shardplan: 1\ndims: " + dims + R"(
inputs: {x: [B, S, H], position: {shape: [S], dtype: i32}}
parameters: {table: [S, H]}
operators:
  row: {op: Gather, in: [table, position]}
  sum: {op: Add, in: [x, row]}
)",
                                                      "m.yaml")),
                        "sum");
  };
  EXPECT_EQ(batch_of_sum("{B: 2, S: 8, H: 4}"), "a");
  EXPECT_EQ(batch_of_sum("{B: 1, S: 8, H: 4}"), "");
}

TEST(BatchFactorsTest, TheSizeIsThatOfOneMicroBatch) {
  const Model model = read_model_text(
      "shardplan: 1\ndims: {B: 24}\ninputs: {x: [B, 8]}\nparameters: {w: [8, 4]}\noperators:\n"
      "  y:    {op: MatMul, in: [x, w]}\n  loss: {op: ReduceMean, in: y}\nloss: loss\n"
      "training: {optimizer: sgd, micro_batches: 2}\n",
      "m.yaml");
  EXPECT_EQ(batch_size(planned_graph(one_micro_batch(model), 8)), 12);
}

// Groups of tokens, each dispatched to [experts, groups, slots, width].
TEST(BatchFactorsTest, TheBatchIsFollowedThroughExperts) {
  const OperatorGraph graph = planned_graph(read_model_text(R"(
shardplan: 1
dims: {G: 4, T: 8, H: 16, F: 32, E: 2, C: 8}
inputs: {x: [G, T, H]}
parameters: {up: [E, H, F], down: [E, F, H]}
operators:
  logits:   {block: nn.Dense, in: x, out_channels: E}
  router:   {op: TopKRouter, in: logits, k: 1, out: [gates, chosen]}
  slots:    {op: ExpertSlots, in: chosen, num_experts: E, capacity: C}
  dispatch: {op: Dispatch, in: [x, chosen, slots], num_experts: E, capacity: C}
  wide:     {op: Einsum, in: [dispatch, up], equation: "egch,ehf->egcf"}
  narrow:   {op: Einsum, in: [wide, down], equation: "egcf,efh->egch"}
  combine:  {op: Combine, in: [narrow, chosen, slots, gates]}
  loss:     {op: ReduceMean, in: combine}
loss: loss
training: {optimizer: sgd}
)",
                                                            "m.yaml"));
  for (const char* name : {"dispatch", "wide", "narrow", "combine", "grad.narrow.Einsum", "grad.wide.Einsum"}) {
    EXPECT_EQ(batch_factor(graph, name), "g") << name;
  }
  EXPECT_TRUE(find_batch(graph).has_batch[*graph.find_tensor("combine")]);
  EXPECT_FALSE(find_batch(graph).has_batch[*graph.find_tensor("wide")]);
}

TEST(BatchFactorsTest, TheLeadingFactorIsTheMajorOneOrThatOfTheWindow) {
  EXPECT_EQ(leading_factor({}), std::nullopt);
  EXPECT_EQ(leading_factor({DimensionWalk{}, DimensionWalk{{3}, {}}}), std::nullopt);
  EXPECT_EQ(leading_factor({DimensionWalk{{2, 1}, {}}}), 2u);
  EXPECT_EQ(leading_factor({DimensionWalk{{}, Window{4, 5}}}), 4u);
  EXPECT_EQ(leading_factor({DimensionWalk{{2, 1}, {}}, DimensionWalk{{3}, {}}}, 1), 3u);
  EXPECT_EQ(leading_factor({DimensionWalk{{2, 1}, {}}}, 1), std::nullopt);
}

}  // namespace
}  // namespace shardplan
