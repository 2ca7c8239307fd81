#include "planner/problem/model_problem.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "planner/problem/plan_choice.h"
#include "planner/problem/uniform_layers.h"
#include "program/memory_profile.h"
#include "tests/fuzz/random_model.h"
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

struct Counted {
  std::size_t copies = 0;  // nodes
  std::size_t nearer = 0;  // choices whose peak with copies is higher than without
};

// The reference is what a program holds, counted instruction by instruction from the sizes of its values.
Counted check_peaks(const std::string& text, const std::vector<MeshAxis>& axes, int rounds) {
  const PlannedModel model(read_model_text(text, "m.yaml"), "ascend-910", axes);
  const ModelProblem with_copies = model.with_copies();
  check_problem(with_copies.problem);
  Counted counted{with_copies.copies.size(), 0};
  Random random(7);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    const Choice choice = model.random_choice(random);
    const Evaluation without = evaluate(model.problem.problem, choice);
    EXPECT_EQ(without.forbidden_count, 0u);
    const Evaluation with = evaluate(with_copies.problem, same_choice(model, choice, with_copies));
    EXPECT_EQ(with.forbidden_count, 0u);
    EXPECT_EQ(with.cost, without.cost);
    EXPECT_LE(with.peak_bytes, memory_profile(model.lowered(choice)).peak);
    counted.nearer += with.peak_bytes > without.peak_bytes ? 1 : 0;
  }
  return counted;
}

TEST(ModelProblemTest, HoldsNoMoreThanTheProgramAndWithCopiesNotMuchLess) {
  Counted all;
  for (const char* training :
       {"", ", mixed_precision: f16, clip_norm: 1", ", micro_batches: 2", ", recompute: [layers.*]"}) {
    SCOPED_TRACE(training);
    const Counted counted = check_peaks(layered_model(training), {{"dp", 2}, {"mp", 4}}, 30);
    all.copies += counted.copies;
    all.nearer += counted.nearer;
  }
  EXPECT_GT(all.copies, 50u);
  EXPECT_GT(all.nearer, 30u);
}

TEST(ModelProblemTest, HoldsNoMoreThanTheProgramsOfRandomModels) {
  std::size_t copies = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    copies += check_peaks(random_model(random), {{"a", 2}, {"b", 4}}, 10).copies;
  }
  EXPECT_GT(copies, 100u);
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
  const ModelProblem::OperandCopy& copy = with_copies.copies.front();
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
        expanded.strategy[free.copies[i].node] = choice.strategy[tied.copies[i].node];
      }
      EXPECT_EQ(evaluate(tied.problem, choice).peak_bytes, evaluate(free.problem, expanded).peak_bytes);
    }
  }
}

}  // namespace
}  // namespace shardplan
