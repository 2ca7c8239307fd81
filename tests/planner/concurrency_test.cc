#include "planner/overlap/concurrency.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// Names of the kernels that may overlap with an operator's internal communication.
std::string beside_own(const PlannedModel& planned, const std::string& name) {
  const Concurrency concurrency(planned.graph, planned.versions, planned.problem, false);
  std::string names;
  for (const OperatorId op : planned.graph.operators().ids()) {
    if (planned.graph.operators()[op].name != name) continue;
    concurrency.beside(concurrency.of_own(op)).for_each([&](OperatorId other) {
      names += planned.graph.operators()[other].name + " ";
    });
  }
  return names;
}

// Its sums are completed between its own kernels, so they overlap with none of these. They may overlap with kernels
// that need neither: gradients that need nothing from the forward pass, here those of a mean and a product; a weight's
// gradient, which what comes before the norm does not need. (The mean that the gradient reads is ready before the
// norm's last kernel.)
TEST(ConcurrencyTest, WhatCompletesSumsOfANormRunsBesideNothingOfIt) {
  const PlannedModel planned(
      read_model_text(
          "shardplan: 1\nmodel: m\ninputs: {x: [8, 4, 2, 2]}\nparameters: {v: [2, 2], w: [2, 2]}\noperators:\n"
          "  a: {op: MatMul, in: [x, v]}\n  norm: {block: nn.BatchNorm2d, in: a}\n"
          "  b: {op: MatMul, in: [norm, w]}\n  c: {op: ReduceMean, in: b}\n"
          "loss: c\ntraining: {optimizer: sgd}\n",
          "m.yaml"),
      "dgx-a100", {{"dp", 8}});
  EXPECT_EQ(beside_own(planned, "norm.batch_norm"), "grad.c.Mul grad.c.Reshape grad.c.BroadcastTo grad.b.MatMul ");
  EXPECT_EQ(beside_own(planned, "grad.norm.batch_norm.BatchNormGrad"),
            "norm.batch_norm b c grad.b.Einsum update.w.ApplyGradientDescent ");
}

// One of two sums may be read while the other is still being completed.
TEST(ConcurrencyTest, WhatReadsOneSumRunsBesideTheOther) {
  const PlannedModel planned(
      read_model_text(
          "shardplan: 1\nmodel: m\ninputs: {x: [8, 4, 8, 8]}\nparameters: {v: [8, 8], g: [4], h: [4]}\noperators:\n"
          "  a: {op: MatMul, in: [x, v]}\n  norm: {op: InstanceNorm, in: [a, g, h]}\n"
          "  c: {op: ReduceMean, in: norm}\nloss: c\ntraining: {optimizer: sgd}\n",
          "m.yaml"),
      "dgx-a100", {{"dp", 8}});
  EXPECT_EQ(beside_own(planned, "grad.norm.GroupNormGrad"),
            "norm c grad.c.Mul grad.c.Reshape grad.c.BroadcastTo grad.norm.ReduceSum grad.norm.ReduceSum_1 "
            "update.g.ApplyGradientDescent update.h.ApplyGradientDescent ");
}

// Two recomputed layers. The second is recomputed once the loss has its gradient, the first no earlier than the product
// that computes the second layer's gradient; no communication of the forward pass overlaps with either.
TEST(ConcurrencyTest, WhatIsComputedAgainRunsBehindTheProductsOfTheForwardPassWhereThatIsAsked) {
  const PlannedModel planned(
      read_model_text(
          "shardplan: 1\nmodel: m\ninputs: {x: [8, 8]}\n"
          "blocks:\n  layer:\n    inputs: {a: [8, 8]}\n    parameters: {v: [8, 8], w: [8, 8]}\n    operators:\n"
          "      up: {op: MatMul, in: [a, v]}\n      act: {op: Tanh, in: up}\n"
          "      down: {op: MatMul, in: [act, w]}\n"
          "operators:\n  first: {block: layer, in: x}\n  second: {block: layer, in: first}\n"
          "  third: {block: layer, in: second}\n  s: {op: Mul, in: [third, third]}\n  c: {op: ReduceMean, in: s}\n"
          "loss: c\ntraining: {optimizer: sgd, recompute: [first, second, third]}\n",
          "m.yaml"),
      "dgx-a100", {{"dp", 8}});
  // How many kernels of a recomputed block may overlap with what brings operands to the operators of this name.
  const auto beside = [&](const std::string& readers, const std::string& copies, bool delays_copies) {
    const Concurrency concurrency(planned.graph, planned.versions, planned.problem, false, delays_copies);
    int count = 0;
    for (const OperatorId op : planned.graph.operators().ids()) {
      const GraphOperator& reader = planned.graph.operators()[op];
      if (!std::string(reader.name).starts_with(readers)) continue;
      for (std::size_t operand = 0; operand < reader.operands.size(); ++operand) {
        concurrency.beside(concurrency.of_operand({op, operand})).for_each([&](OperatorId other) {
          count += std::string(planned.graph.operators()[other].name).starts_with(copies) ? 1 : 0;
        });
      }
    }
    return count;
  };
  EXPECT_GT(beside("second.down", "recompute.", false), 0);
  EXPECT_EQ(beside("second.down", "recompute.", true), 0);
  EXPECT_GT(beside("grad.third.", "recompute.first.", false), 0);
  EXPECT_GT(beside("grad.second.up.", "recompute.first.", true), 0);  // one block ahead
}

}  // namespace
}  // namespace shardplan
