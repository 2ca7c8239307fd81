#include "simulator/proof/fewer_copies.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/read_model.h"
#include "planner/model_planner.h"
#include "program/program_checker.h"
#include "simulator/proof/prove.h"
#include "simulator/proof/validate.h"
#include "tests/support/marked_model.h"

namespace shardplan {
namespace {

Plan planned(const std::string& text, Level level, const char* cluster = "dgx-a100", const ModelOverrides& with = {}) {
  const auto model = std::make_shared<const Model>(read_model_text(text, "deep.yaml", with));
  PlanOptions options;
  options.uniform_layers = true;
  options.work_limit = 20'000'000;
  return ModelPlanner(model, read_cluster(cluster), options).plan(level, "auto");
}

std::string deep_model(const std::string& training, int copies = 7) {
  std::string text = layered_model(training);
  return text.replace(text.find("L: 3"), 4, "L: " + std::to_string(copies));
}

/// Attention in an inner repeat, a norm over all gradients, a skip connection from the first copy to all.
const char* kNested = R"(
shardplan: 1
model: nested
dims: {B: 16, S: 8, H: 16, heads: 4}
inputs: {x: [B, S, H], y: [B, S, H]}
blocks:
  mix:
    inputs: {x: [B, S, H]}
    operators:
      norm: {block: nn.RMSNorm, in: x}
      q:    {block: nn.Dense, in: norm, out_channels: H}
      k:    {block: nn.Dense, in: norm, out_channels: H}
      s:    {op: BatchMatMul, in: [q, k], transpose_b: true}
      p:    {op: Softmax, in: s}
      o:    {op: BatchMatMul, in: [p, norm]}
      add:  {op: Add, in: [x, o]}
  stage:
    dims: {depth: given}
    inputs: {x: [B, S, H]}
    operators:
      first:  {block: nn.Dense, in: x, out_channels: H}
      blocks: {block: mix, in: first, repeat: depth}
      last:   {block: nn.Dense, in: blocks, out_channels: H}
operators:
  stages: {block: stage, in: x, depth: 6, repeat: 5}
  head:   {block: stage, in: stages, depth: 2}
  error:  {op: Sub, in: [head, y]}
  square: {op: Square, in: error}
  loss:   {op: ReduceMean, in: square}
loss: loss
training: {optimizer: adamw, learning_rate: 0.1, clip_norm: 1)";

struct DeepCase {
  const char* name;
  std::string text;
  const char* cluster = "dgx-a100";
};
void PrintTo(const DeepCase& c, std::ostream* out) { *out << c.name; }

const DeepCase kDeepCases[] = {
    {"plain", deep_model("")},
    {"clipped", deep_model(", clip_norm: 1")},
    {"recomputed", deep_model(", recompute: [layers.*]")},
    {"micro_batches", deep_model(", micro_batches: 2")},
    {"mixed_precision", deep_model(", mixed_precision: bf16")},
    {"two_nodes", deep_model(", clip_norm: 1", 12), "ascend-910x2"},
    {"nested", std::string(kNested) + "}"},
    {"nested_in_bf16", std::string(kNested) + ", mixed_precision: bf16}"},
};

class FewerCopiesTest : public testing::TestWithParam<DeepCase> {};

TEST_P(FewerCopiesTest, AreTheModelOfFourCopiesAndComputeWhatItDoes) {
  for (const Level level : {Level::kRatio, Level::kMemory, Level::kSpeed}) {
    const Plan plan = planned(GetParam().text, level, GetParam().cluster);
    ASSERT_FALSE(plan.strategies.empty());
    const std::optional<FewerCopies> fewer = fewer_copies(plan);
    ASSERT_TRUE(fewer.has_value()) << to_string(level);
    EXPECT_LT(fewer->program.instructions.size(), plan.program.instructions.size() * 3 / 4);
    EXPECT_EQ(check_program(fewer->program, *fewer->graph), "");
    const ValidationResult result = validate(fewer->program, *fewer->graph, {.steps = 2});
    EXPECT_TRUE(result.is_equal()) << result.first_wrong->tensor << " by " << result.first_wrong->instruction;
    // Every operator runs, and every new value is stored.
    IdVector<OperatorId, char> runs(fewer->graph->operators().size(), 0);
    for (const Instruction& instruction : fewer->program.instructions) {
      if (instruction.op && instruction.kind == InstructionKind::kOperator) runs[*instruction.op] = 1;
    }
    EXPECT_EQ(std::count(runs.begin(), runs.end(), 0), 0);
    std::size_t updated = 0;
    for (const GraphTensor& tensor : fewer->graph->tensors()) updated += tensor.updates ? 1 : 0;
    EXPECT_EQ(fewer->program.updates.size(), updated);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FewerCopiesTest, testing::ValuesIn(kDeepCases),
                         [](const auto& test) { return std::string(test.param.name); });

/// Whether an instruction belongs to an omitted copy: of seven, the third to the fifth.
bool is_of_middle_copy(const std::string& name) {
  for (const char* copy : {"layers.2.", "layers.3.", "layers.4."}) {
    if (name.find(copy) != std::string::npos) return true;
  }
  return false;
}

// An error in an omitted copy alone must prevent its omission.
TEST(FewerCopiesTest, ACopyThatDoesSomethingElseIsNotLeftOut) {
  Plan plan = planned(deep_model(", clip_norm: 1"), Level::kMemory);
  ASSERT_TRUE(fewer_copies(plan).has_value());
  const ParallelProgram right = plan.program;
  std::size_t changes = 0;
  const auto expect_noticed = [&](const std::string& what) {
    ++changes;
    EXPECT_FALSE(fewer_copies(plan).has_value()) << what;
    plan.program = right;
  };
  for (std::size_t i = 0; i < right.instructions.size(); ++i) {
    const Instruction& own = right.instructions[i];
    if (!is_of_middle_copy(own.name)) continue;
    // It reads another value of the same type and layout: that of another copy, or of another operator.
    for (std::size_t k = 0; k < own.inputs.size(); ++k) {
      const ProgramValue& read = right.values[own.inputs[k]];
      std::size_t tried = 0;
      for (const ValueId other : right.values.ids()) {
        const ProgramValue& value = right.values[other];
        if (other == own.inputs[k] || value.type != read.type || value.layout != read.layout || tried > 3) continue;
        if (!value.tensor) continue;  // buffers of buckets
        ++tried;
        plan.program.instructions[i].inputs[k] = other;
        expect_noticed(own.name + " reads " + value.name);
      }
    }
    if (own.kind == InstructionKind::kCollective) {
      const CollectiveStep right_step = own.step;
      CollectiveStep step = right_step;
      step.reduction = Reduction::kMax;
      plan.program.instructions[i].step = step;
      expect_noticed(own.name + " takes the maximum");
      step = right_step;
      step.axes.clear();
      plan.program.instructions[i].step = step;
      expect_noticed(own.name + " has no groups");
      step = right_step;
      const bool permutes = step.kind == CollectiveKind::kCollectivePermute;
      step.kind = permutes ? CollectiveKind::kAllGather : CollectiveKind::kCollectivePermute;
      plan.program.instructions[i].step = step;
      expect_noticed(own.name + " is another collective");
    }
    Strategy strategy = own.strategy;
    if (own.kind == InstructionKind::kOperator && !strategy.factors.empty()) {
      std::vector<std::vector<AxisRef>> factors(strategy.factors.begin(), strategy.factors.end());
      factors.front() = factors.front().empty() ? std::vector<AxisRef>{right.mesh.whole(0)} : std::vector<AxisRef>();
      strategy.factors = SharedVector<std::vector<AxisRef>>(factors);
      plan.program.instructions[i].strategy = strategy;
      expect_noticed(own.name + " is cut otherwise");
    }
    plan.program.instructions.erase(plan.program.instructions.begin() + static_cast<std::ptrdiff_t>(i));
    expect_noticed(own.name + " is left out");
  }
  EXPECT_GT(changes, 200u);
}

TEST(FewerCopiesTest, CopiesThatTheFileNamesStay) {
  std::string text = deep_model("");
  text += "strategies: {layers.4.up.matmul: {in_strategy: [[2, 1], [1, 1]]}}\n";
  const auto model = std::make_shared<const Model>(read_model_text(text, "deep.yaml"));
  const Plan plan = ModelPlanner(model, read_cluster("dgx-a100"), {}).plan(Level::kRatio, "propagation");
  EXPECT_FALSE(fewer_copies(plan).has_value());
}

TEST(FewerCopiesTest, FourCopiesStay) {
  EXPECT_FALSE(fewer_copies(planned(deep_model("", 4), Level::kRatio)).has_value());
  EXPECT_TRUE(fewer_copies(planned(deep_model("", 5), Level::kRatio)).has_value());
}

// A deep and wide plan is proven with omitted copies, and the proof says so.
TEST(FewerCopiesTest, AnExpensiveProofLeavesThemOut) {
  std::string text = deep_model(", clip_norm: 1", 100);
  text.replace(text.find("out_channels: F"), 15, "out_channels: 16384");  // no dim, so that it is not scaled at first
  const Proof proof = prove(planned(text, Level::kRatio), {.validation = {.steps = 1}});
  EXPECT_TRUE(proof.is_proven());
  ASSERT_FALSE(proof.shrinking.notes.empty());
  EXPECT_EQ(proof.shrinking.notes.front(),
            "96 of 100 copies of layers run the instructions of layers.1 and are left out");
}

}  // namespace
}  // namespace shardplan
