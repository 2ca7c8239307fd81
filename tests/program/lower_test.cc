#include "program/lower.h"

#include <gtest/gtest.h>

#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// Several readers of one tensor, a partial sum on its way, a softmax that may be cut, an output.
constexpr const char* kAttention = R"(
shardplan: 1
model: attention
dims: {B: 8, S: 16, H: 32, heads: 8, D: H/heads}
inputs: {x: [B, S, H]}
blocks:
  project:
    inputs: {x: [B, S, H]}
    operators:
      dense:   {block: nn.Dense, in: x, out_channels: H}
      by_head: {op: Reshape, in: dense, shape: [B, S, heads, D]}
      turned:  {op: Transpose, in: by_head, perm: [0, 2, 1, 3]}
operators:
  norm:    {block: nn.LayerNorm, in: x}
  q:       {block: project, in: norm}
  k:       {block: project, in: norm}
  v:       {block: project, in: norm}
  scores:  {op: BatchMatMul, in: [q, k], transpose_b: true}
  probs:   {op: Softmax, in: scores, axis: -1}
  context: {op: BatchMatMul, in: [probs, v]}
  merge:   {op: Transpose, in: context, perm: [0, 2, 1, 3]}
  merged:  {op: Reshape, in: merge, shape: [B, S, H]}
  o:       {block: nn.Dense, in: merged, out_channels: H}
  out:     {op: Add, in: [x, o]}
outputs: [out]
)";

PlannedModel attention() {
  return PlannedModel(read_model_text(kAttention, "attention.yaml"), "ascend-910", {{"dp", 2}, {"mp", 4}});
}

TEST(LowerTest, AnyChoiceCostsInTheProgramWhatEvaluateSays) {
  const PlannedModel model = attention();
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const Choice choice = model.random_choice(random);
    const Evaluation evaluation = evaluate(model.problem.problem, choice);
    ASSERT_EQ(evaluation.never_count, 0u);
    const ParallelProgram program = model.lowered(choice);
    EXPECT_EQ(program.computation(), evaluation.cost.computation) << "round " << round;
    EXPECT_EQ(program.communication(), evaluation.cost.communication) << "round " << round;
    EXPECT_EQ(check_program(program, model.graph), "") << "round " << round;
  }
}

TEST(LowerTest, TheProgramHoldsAtMostWhatTheProblemSaysBesidesTransients) {
  const PlannedModel model = attention();
  Random random(2);
  for (int round = 0; round < 50; ++round) {
    const Choice choice = model.random_choice(random);
    const ParallelProgram program = model.lowered(choice);
    // What lives only within the time of one operator is a transient: redistributed operands, constants, phases.
    Bytes transients = 0;
    for (const ProgramValue& value : program.values) {
      if (!value.tensor || model.graph.tensor(*value.tensor).kind == TensorKind::kConstant) transients += value.bytes;
    }
    for (const Instruction& instruction : program.instructions) {
      if (instruction.kind == InstructionKind::kCollective) transients += program.values[instruction.outputs[0]].bytes;
    }
    EXPECT_LE(memory_profile(program).peak, evaluate(model.problem.problem, choice).peak_bytes + transients);
  }
}

}  // namespace
}  // namespace shardplan
