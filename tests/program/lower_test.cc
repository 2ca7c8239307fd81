#include "program/lower.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/side_by_side.h"
#include "model/read_model.h"
#include "program/memory_profile.h"
#include "program/program_checker.h"
#include "program/timeline.h"
#include "tests/support/marked_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// Several readers of one tensor, a pending partial sum, a softmax that may be sharded, an output.
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

PlannedModel layered(const std::string& training) {
  return PlannedModel(read_model_text(layered_model(training), "layered.yaml"), "ascend-910", {{"dp", 2}, {"mp", 4}});
}

PlannedModel attention() {
  return PlannedModel(read_model_text(kAttention, "attention.yaml"), "ascend-910", {{"dp", 2}, {"mp", 4}});
}

class AnyChoice : public testing::TestWithParam<const char*> {};

TEST_P(AnyChoice, CostsInTheProgramWhatEvaluateSays) {
  const PlannedModel model = *GetParam() == '\0' ? attention() : layered(GetParam());
  Random random(1);
  for (int round = 0; round < 40; ++round) {
    const Choice choice = model.random_choice(random);
    const Evaluation evaluation = evaluate(model.problem.problem, choice);
    ASSERT_EQ(evaluation.forbidden_count, 0u);
    const ParallelProgram program = model.lowered(choice);
    const Timeline times = timeline(program);
    EXPECT_EQ(times.computation, evaluation.cost.computation) << "round " << round;
    EXPECT_EQ(times.communication, evaluation.cost.communication) << "round " << round;
    EXPECT_EQ(times.end, evaluation.value({1, 1})) << "round " << round;
    EXPECT_EQ(check_program(program, model.graph), "") << "round " << round;
  }
}

/// Everything that a program does, with its operands.
std::vector<std::string> lines_of(const ParallelProgram& program) {
  std::vector<std::string> lines;
  const auto values = [&](std::span<const ValueId> of) {
    std::string text;
    for (const ValueId id : of) {
      const ProgramValue& value = program.values[id];
      text += fmt::format(" {}:{} {} {}", id.value(), std::string(value.name), to_string(value.layout, program.mesh),
                          value.bytes);
    }
    return text;
  };
  for (const Instruction& one : program.instructions) {
    lines.push_back(fmt::format("{} {} {} {}:{} ->{}", std::string(one.name), one.time, one.runs, one.links,
                                values(one.inputs), values(one.outputs)));
  }
  return lines;
}

TEST_P(AnyChoice, IsWrittenAlikeBesideOthers) {
  const PlannedModel model = *GetParam() == '\0' ? attention() : layered(GetParam());
  Random random(3);
  std::vector<Decisions> decisions;
  for (int i = 0; i < 12; ++i) decisions.push_back(model.decided(model.random_choice(random)));
  const KernelFusion fusion = kernel_fusion(model.graph, model.costs->fusion());
  ProgramWriter writer(model.graph, model.versions, *model.costs, *model.redistributions, fusion);
  std::vector<ParallelProgram> written(decisions.size());
  side_by_side(3, decisions.size(), [&](std::size_t, std::size_t i) { written[i] = writer.write(decisions[i]); });
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const auto own = model.redistributions->another();
    const ParallelProgram alone = lower(model.graph, model.versions, decisions[i], *model.costs, *own);
    EXPECT_EQ(lines_of(written[i]), lines_of(alone)) << i;
  }
}

std::string case_name(const testing::TestParamInfo<const char*>& tested) {
  const std::vector<std::string> names{"attention", "training", "recompute", "micro_batches", "operators"};
  return names[tested.index];
}
INSTANTIATE_TEST_SUITE_P(Lower, AnyChoice,
                         testing::Values("", ", weight_decay: 0.1", ", recompute: [layers.*]",
                                         ", recompute: [layers.*], micro_batches: 2",
                                         ", recompute: [layers.*.gelu, layers.*.drop], micro_batches: 2"),
                         case_name);

TEST(LowerTest, TheProgramHoldsAtMostWhatTheProblemSaysBesidesTransients) {
  const PlannedModel model = attention();
  Random random(2);
  for (int round = 0; round < 50; ++round) {
    const Choice choice = model.random_choice(random);
    const ParallelProgram program = model.lowered(choice);
    // Values that live only during one operator are transients: redistributed operands, constants, phases.
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

/// The choice in which every device computes and holds everything.
Choice replicated_choice(const PlannedModel& model) {
  Choice choice;
  choice.strategy = IdVector<NodeId, StrategyId>(model.problem.problem.nodes.size());
  const auto is_whole = [](const TensorLayout& layout) {
    return layout == TensorLayout::replicated(layout.dimensions.size());
  };
  for (const OperatorId op : model.graph.operators().ids()) {
    for (std::size_t i = 0; i < model.problem.strategies[op]->size(); ++i) {
      const Strategy& strategy = (*model.problem.strategies[op])[i];
      const bool uncut = std::all_of(strategy.factors.begin(), strategy.factors.end(),
                                     [](const std::vector<AxisRef>& axes) { return axes.empty(); });
      if (uncut && strategy.partial.empty()) choice.strategy[model.problem.operator_nodes[op]] = StrategyId(i);
    }
  }
  for (const VersionId version : model.versions.all.ids()) {
    if (!model.problem.version_nodes[version]) continue;
    const auto& choices = *model.problem.choices[version];
    for (std::size_t i = choices.size(); i-- > 0;) {
      if (is_whole(choices[i].layout)) choice.strategy[*model.problem.version_nodes[version]] = StrategyId(i);
    }
  }
  return choice;
}

/// The bytes that forward results take when the backward pass begins.
Bytes kept_bytes(const PlannedModel& model) {
  const ParallelProgram program = model.lowered(replicated_choice(model));
  const MemoryProfile memory = memory_profile(program);
  Bytes stored = 0;
  for (const Binding& given : program.given) stored += given.is_input ? 0 : program.values[given.value].bytes;
  std::size_t first = 0;
  while (program.instructions[first].pass != Pass::kBackward) ++first;
  return memory.bytes[first] - stored;
}

TEST(LowerTest, ARecomputedBlockKeepsItsInputOnly) {
  const Bytes plain = kept_bytes(layered(""));
  const Bytes marked = kept_bytes(layered(", recompute: [layers.*]"));
  // Kept for a layer besides its input, in f32 except the mask: the norm's result, [8, 16]; those of the first linear
  // map and of the dropout, 2 x [8, 32]; the mask, a byte of [8, 32]. With recomputation only the input is kept.
  const Bytes layer = 4 * (8 * 16 + 2 * 8 * 32) + 8 * 32;
  EXPECT_EQ(plain - marked, 3 * layer);
}

TEST(LowerTest, MicroBatchesKeepTheirShareOfActivationsAndAllSums) {
  const PlannedModel whole = layered("");
  const PlannedModel parts = layered(", micro_batches: 4");
  Bytes sums = 0;
  for (const TensorId id : parts.graph.tensors().ids()) {
    if (parts.graph.is_accumulated(id)) sums += parts.graph.tensor(id).type.bytes();
  }
  Bytes parameters = 0;
  for (const GraphTensor& tensor : parts.graph.tensors()) {
    if (tensor.kind == TensorKind::kParameter) parameters += tensor.type.bytes();
  }
  EXPECT_EQ(sums, parameters + 4);  // one gradient each, and the loss
  EXPECT_NEAR(static_cast<double>(kept_bytes(parts) - sums), static_cast<double>(kept_bytes(whole)) / 4, 16.0);
}

}  // namespace
}  // namespace shardplan
