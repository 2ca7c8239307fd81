#include "planner/problem/model_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "model/read_model.h"
#include "planner/problem/plan_choice.h"
#include "planner/problem/uniform_layers.h"
#include "program/memory_profile.h"
#include "tests/fuzz/random_model.h"
#include "tests/support/files.h"
#include "tests/support/marked_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// The corresponding choice of another problem of the same model.
Choice same_choice(const PlannedModel& model, const Choice& choice, const ModelProblem& of) {
  IdVector<OperatorId, Strategy> strategies;
  for (const OperatorId op : model.graph.operators().ids()) strategies.push_back(model.problem.strategy(op, choice));
  const auto layouts = version_layouts(model.graph, model.versions, model.problem, choice, model.costs->mesh());
  const std::optional<Choice> found = find_choice(model.versions, of, strategies, layouts);
  EXPECT_TRUE(found.has_value());
  return found.value_or(Choice{});
}

/// The same choice, but versions that their last readers free have the layout of those readers.
Choice without_detours(const PlannedModel& model, Choice choice) {
  for (const VersionId id : model.versions.all.ids()) {
    const TensorVersion& version = model.versions.all[id];
    if (!model.problem.version_nodes[id] || version.readers.empty() || !version.next.empty()) continue;
    const Reader& reader = version.readers.back();
    const TensorLayout layout =
        operand_layout(model.graph.operation(reader.op), model.problem.strategy(reader.op, choice), model.costs->mesh(),
                       reader.operand);
    const auto& layouts = *model.problem.choices[id];
    const auto found = std::find_if(layouts.begin(), layouts.end(), [&](const ModelProblem::VersionChoice& one) {
      return one.layout == layout && !one.shares_stored;
    });
    if (found == layouts.end()) continue;
    choice.strategy[*model.problem.version_nodes[id]] = StrategyId(static_cast<std::size_t>(found - layouts.begin()));
  }
  return same_choice(model, choice, model.problem);
}

struct Counted {
  std::size_t checked = 0;  // choices
  std::size_t copies = 0;   // nodes
  std::size_t nearer = 0;   // choices whose peak with copies is higher than without
};

// The reference is what a program holds, counted instruction by instruction from the sizes of its values.
Counted check_peaks(const std::string& text, const std::vector<MeshAxis>& axes, int rounds,
                    const ModelOverrides& overrides = {}) {
  const PlannedModel model(read_model_text(text, "m.yaml", overrides), "ascend-910", axes);
  const ModelProblem with_copies = model.with_copies();
  check_problem(with_copies.problem);
  Counted counted{0, with_copies.copies.size(), 0};
  Random random(7);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    const Choice choice = without_detours(model, model.random_choice(random));
    const Evaluation without = evaluate(model.problem.problem, choice);
    EXPECT_EQ(without.forbidden_count, 0u);
    const Evaluation with = evaluate(with_copies.problem, same_choice(model, choice, with_copies));
    EXPECT_EQ(with.forbidden_count, 0u);
    EXPECT_EQ(with.cost, without.cost);
    const ParallelProgram program = model.lowered(choice);
    if (has_unread_result(program)) continue;
    ++counted.checked;
    const Bytes held = memory_profile(program).peak;
    EXPECT_LE(without.peak_bytes, held);
    EXPECT_LE(with.peak_bytes, held);
    counted.nearer += with.peak_bytes > without.peak_bytes ? 1 : 0;
  }
  return counted;
}

TEST(ModelProblemTest, HoldsNoMoreThanTheProgramAndWithCopiesNotMuchLess) {
  Counted all;
  for (const char* training :
       {"", ", mixed_precision: f16, clip_norm: 1", ", micro_batches: 2", ", recompute: [layers.*]",
        ", recompute: [layers.*.gelu, layers.*.drop, layers.*.norm.layer_norm]"}) {
    SCOPED_TRACE(training);
    const Counted counted = check_peaks(layered_model(training), {{"dp", 2}, {"mp", 4}}, 30);
    all.checked += counted.checked;
    all.copies += counted.copies;
    all.nearer += counted.nearer;
  }
  EXPECT_GT(all.checked, 60u);
  EXPECT_GT(all.copies, 50u);
  EXPECT_GT(all.nearer, 30u);
}

TEST(ModelProblemTest, HoldsNoMoreThanTheProgramsOfRandomModels) {
  Counted all;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Counted counted = check_peaks(random_model(random), {{"a", 2}, {"b", 4}}, 10);
    all.checked += counted.checked;
    all.copies += counted.copies;
  }
  EXPECT_GT(all.checked, 1000u);
  EXPECT_GT(all.copies, 100u);
}

// What is written in place is in the stored tensor's memory, also while the next operator reads it.
TEST(ModelProblemTest, HoldsNoMoreThanTheProgramsOfModelsThatWriteInPlace) {
  ModelOverrides decoder;
  decoder.dims = {{"B", 8}, {"T", 32}, {"H", 64}, {"heads", 8}, {"kv", 4}, {"D", 8}, {"F", 64}, {"V", 64}, {"L", 2}};
  const std::vector<MeshAxis> axes{{"a", 2}, {"b", 4}};
  std::string text = content_of("configs/models/llama3-70b-decode.yaml");
  text.replace(text.find("dtype: bf16"), 11, "dtype: f16");  // which the cluster computes
  EXPECT_GT(check_peaks(text, axes, 100, decoder).checked, 10u);
  constexpr char kTrained[] = R"(
shardplan: 1
inputs: {ids: {shape: [32], dtype: i32}}
operators:
  rows:  {block: nn.Embedding, in: ids, vocab_size: 64, embedding_size: 64, sparse: true}
  image: {op: Reshape, in: rows, shape: [32, 4, 4, 4]}
  norm:  {block: nn.BatchNorm2d, in: image}
  flat:  {op: Reshape, in: norm, shape: [32, 64]}
  fc:    {block: nn.Dense, in: flat, out_channels: 16}
  loss:  {op: ReduceMean, in: fc}
loss: loss
training: {optimizer: adam}
)";
  EXPECT_GT(check_peaks(kTrained, axes, 100).checked, 10u);
  // Read by two operators, and through a view.
  constexpr char kShared[] = R"(
shardplan: 1
dims: {B: 8, T: 32, heads: 8, kv: 4, D: 8}
inputs:
  position: {shape: [B], dtype: i32}
  q1: [B, heads, 1, D]
  q2: [B, heads, 1, D]
  k: [B, kv, 1, D]
  v: [B, kv, 1, D]
parameters:
  keys:   {shape: [B, kv, T, D], requires_grad: false}
  values: {shape: [B, kv, T, D], requires_grad: false}
operators:
  k_all:  {op: KVCacheScatterUpdate, in: [keys, position, k]}
  v_all:  {op: KVCacheScatterUpdate, in: [values, position, v]}
  viewed: {op: Reshape, in: v_all, shape: [B, kv, T, D]}
  a1:     {op: FlashAttention, in: [q1, k_all, viewed]}
  a2:     {op: FlashAttention, in: [q2, k_all, viewed]}
  sum:    {op: Add, in: [a1, a2]}
)";
  EXPECT_GT(check_peaks(kShared, axes, 100).checked, 10u);
}

// The gradient of the attention keeps `context`, that of the projection keeps `merged`, a view of it: one piece of
// memory, unless `merged` is kept in another layout.
TEST(ModelProblemTest, CountsATensorAndItsViewOnce) {
  const std::string text = R"(
shardplan: 1
model: attention
dims: {B: 8, S: 16, H: 16, heads: 4, D: 4}
inputs: {x: [B, S, H]}
operators:
  q:       {block: nn.Dense, in: x, out_channels: H}
  k:       {block: nn.Dense, in: x, out_channels: H}
  v:       {block: nn.Dense, in: x, out_channels: H}
  q_h:     {op: Reshape, in: q, shape: [B, S, heads, D]}
  k_h:     {op: Reshape, in: k, shape: [B, S, heads, D]}
  v_h:     {op: Reshape, in: v, shape: [B, S, heads, D]}
  scores:  {op: Einsum, in: [q_h, k_h], equation: "bqhd,bkhd->bhqk"}
  probs:   {op: Softmax, in: scores}
  context: {op: Einsum, in: [probs, v_h], equation: "bhqk,bkhd->bqhd"}
  merged:  {op: Reshape, in: context, shape: [B, S, H]}
  out:     {block: nn.Dense, in: merged, out_channels: H}
  square:  {op: Square, in: out}
  loss:    {op: ReduceMean, in: square}
loss: loss
parallel: {attention: fused}
training: {optimizer: momentum, learning_rate: 0.1}
)";
  const std::vector<MeshAxis> axes{{"a", 2}, {"b", 4}};
  EXPECT_GT(check_peaks(text, axes, 100).checked, 50u);

  const PlannedModel model(read_model_text(text, "m.yaml"), "ascend-910", axes);
  const auto kept = [&](const std::string& name) {
    for (const VersionId id : model.versions.all.ids()) {
      const TensorVersion& version = model.versions.all[id];
      if (model.graph.tensor(version.tensor).name == name && version.kind == TensorVersion::Kind::kKept) return id;
    }
    ADD_FAILURE() << name << " is not kept";
    return VersionId(0);
  };
  // What `context` and `merged` take is read off the peaks of a problem without all other memory.
  ModelProblem only = model.problem;
  const NodeId merged = *only.version_nodes[kept("merged")];
  const auto is_of = [&](NodeId node) {
    return node == *only.version_nodes[kept("context")] || node == merged ||
           std::any_of(only.copies.begin(), only.copies.end(),
                       [&](const ModelProblem::Copy& copy) { return copy.node == node && copy.taker == merged; });
  };
  const std::uint32_t time = model.versions.all[kept("merged")].end - 1;
  ASSERT_LT(time, model.versions.all[kept("context")].end);
  for (const NodeId node : only.problem.nodes.ids()) {
    std::vector<MemoryUse>& memory = only.problem.nodes[node].memory;
    std::erase_if(memory, [&](const MemoryUse& use) { return !is_of(node) || time < use.begin || use.end <= time; });
  }
  const OperatorId view = *model.graph.tensor(model.versions.all[kept("merged")].tensor).producer;
  const DeviceMesh& mesh = model.costs->mesh();
  const auto bytes = [&](VersionId id, const Choice& choice) {
    const TensorType& type = model.graph.tensor(model.versions.all[id].tensor).type;
    return local_bytes(type, model.problem.version_choice(id, choice).layout);
  };
  const auto layouts_of = [&](const Choice& choice) {
    return version_layouts(model.graph, model.versions, model.problem, choice, mesh);
  };
  const VersionId read = *model.versions.read[view][0];
  const auto set_layout = [&](Choice& choice, VersionId id, const TensorLayout& layout) {
    const auto& layouts = *model.problem.choices[id];
    const auto found =
        std::find_if(layouts.begin(), layouts.end(), [&](const auto& one) { return one.layout == layout; });
    if (found == layouts.end()) return;
    choice.strategy[*model.problem.version_nodes[id]] = StrategyId(static_cast<std::size_t>(found - layouts.begin()));
  };
  /// The view takes `context` as it is produced, and both are kept so.
  const auto aligned = [&](Choice choice) {
    const TensorLayout layout = layouts_of(choice)[read];
    const std::vector<Strategy>& strategies = *model.problem.strategies[view];
    for (std::size_t i = 0; i < strategies.size(); ++i) {
      if (!(operand_layout(model.graph.operation(view), strategies[i], mesh, 0) == layout)) continue;
      choice.strategy[model.problem.operator_nodes[view]] = StrategyId(i);
      set_layout(choice, kept("merged"), result_layout(model.graph.operation(view), strategies[i], mesh, 0));
    }
    set_layout(choice, kept("context"), layout);
    return same_choice(model, choice, model.problem);
  };
  Random random(1);
  std::array<std::size_t, 2> counts{};  // in one place, in two
  for (int round = 0; round < 200; ++round) {
    Choice choice = same_choice(model, model.random_choice(random), model.problem);
    if (round % 2 == 0) choice = aligned(std::move(choice));
    const Strategy& strategy = model.problem.strategy(view, choice);
    const auto layouts = layouts_of(choice);
    const bool is_shown = layouts[read] == operand_layout(model.graph.operation(view), strategy, mesh, 0) &&
                          layouts[read] == layouts[kept("context")] &&
                          result_layout(model.graph.operation(view), strategy, mesh, 0) == layouts[kept("merged")];
    EXPECT_EQ(evaluate(only.problem, choice).peak_bytes,
              bytes(kept("context"), choice) + (is_shown ? 0 : bytes(kept("merged"), choice)));
    ++counts[is_shown ? 0 : 1];
  }
  EXPECT_GT(counts[0], 20u);
  EXPECT_GT(counts[1], 50u);
}

// `start` is read twice: as the rows of a product, replicated or sharded, and at the end.
TEST(ModelProblemTest, CountsACopyWhereLayoutsDiffer) {
  const PlannedModel model(read_model_text(R"(
shardplan: 1
model: twice
inputs: {x: [64, 64], y: [64, 64]}
operators:
  start: {op: Exp, in: x}
  a: {op: MatMul, in: [start, y]}
  b: {op: Add, in: [start, a]}
)",
                                           "m.yaml"),
                           "ascend-910", {{"d", 8}});
  const ModelProblem with_copies = model.with_copies();
  ASSERT_EQ(with_copies.copies.size(), 1u);
  const ModelProblem::Copy& copy = with_copies.copies[CopyId(0)];
  Random random(1);
  std::size_t num_copies = 0;
  for (int round = 0; round < 50; ++round) {
    const Choice choice = same_choice(model, model.random_choice(random), with_copies);
    const TensorLayout layout =
        operand_layout(model.graph.operation(copy.op), with_copies.strategy(copy.op, choice), model.costs->mesh(), 0);
    const VersionId version = *model.versions.read[copy.op][0];
    const bool differs = !(with_copies.version_choice(version, choice).layout == layout);
    const ProblemNode& node = with_copies.problem.nodes[copy.node];
    const Bytes bytes =
        with_copies.problem.usage_tables[node.memory.front().usage].bytes[choice.strategy[copy.node].value()];
    EXPECT_EQ(bytes, differs ? local_bytes(model.graph.tensor(model.versions.all[version].tensor).type, layout) : 0);
    num_copies += differs ? 1 : 0;
  }
  EXPECT_GT(num_copies, 10u);
  EXPECT_LT(num_copies, 50u);
}

TEST(ModelProblemTest, CopiesOfUniformLayersAreTied) {
  for (const char* training : {"", ", recompute: [layers.*]"}) {
    std::string text = layered_model(training);
    text.replace(text.find("L: 3"), 4, "L: 7");
    const PlannedModel model(read_model_text(text, "m.yaml"), "ascend-910", {{"dp", 2}, {"mp", 4}});
    const ModelProblem free = model.with_copies();
    const ModelProblem tied = with_uniform_layers(free, model.graph, model.versions, repeat_classes(model.graph));
    check_problem(tied.problem);
    EXPECT_LT(2 * tied.problem.nodes.size(), free.problem.nodes.size());
    Random random(3);
    for (int round = 0; round < 20; ++round) {
      Choice choice;
      for (const NodeId node : tied.problem.nodes.ids()) {
        choice.strategy.push_back(StrategyId(random.below(tied.problem.num_strategies(node))));
      }
      Choice expanded;
      expanded.strategy.resize(free.problem.nodes.size(), StrategyId(0));
      for (const OperatorId op : model.graph.operators().ids()) {
        expanded.strategy[free.operator_nodes[op]] = choice.strategy[tied.operator_nodes[op]];
      }
      for (const VersionId id : model.versions.all.ids()) {
        if (free.version_nodes[id])
          expanded.strategy[*free.version_nodes[id]] = choice.strategy[*tied.version_nodes[id]];
      }
      for (std::size_t i = 0; i < free.copies.size(); ++i) {
        expanded.strategy[free.copies[CopyId(i)].node] = choice.strategy[tied.copies[CopyId(i)].node];
      }
      EXPECT_EQ(evaluate(tied.problem, choice).peak_bytes, evaluate(free.problem, expanded).peak_bytes);
    }
  }
}

}  // namespace
}  // namespace shardplan
