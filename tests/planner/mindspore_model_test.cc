// MindSpore's published choices (from its test suite's dynamic programming; reference figures G1, G5, G7, G9), found by
// our searches on the problem that MindSporeModel builds. The same figures come from brute force over hand-written
// candidates in tests/costmodel/mindspore_costs_test.cc, which shares only the formulas.
#include "planner/mindspore_model.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/random.h"
#include "costmodel/cluster/cluster.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

constexpr const char* kTwoMatMuls = R"(
shardplan: 1
inputs: {x: [128, 32], w: [32, 64], v: [64, 64]}
operators:
  a: {op: MatMul, in: [x, w]}
  b: {op: MatMul, in: [a, v]}
)";
constexpr const char* kColumn = R"(
shardplan: 1
inputs: {x: [64, 32], w: [32, 1], y: [1, 64]}
operators:
  a: {op: MatMul, in: [x, w]}
  b: {op: Div, in: [a, y]}
)";
constexpr const char* kCube = R"(
shardplan: 1
inputs: {x: [64, 32], w: [32, 32], y: [128, 64, 32]}
operators:
  a: {op: MatMul, in: [x, w]}
  b: {op: Div, in: [a, y]}
)";
constexpr const char* kMul = R"(
shardplan: 1
inputs: {x: [16, 3, 128, 32], y: [16, 3, 128, 32]}
operators:
  a: {op: Mul, in: [x, y]}
)";

/// The numbers of pieces of an operator's factors, "(16,1,1)".
std::string cuts_text(const Strategy& strategy) {
  std::string text;
  for (const auto& axes : strategy.factors) text += fmt::format("{}{}", text.empty() ? "(" : ",", num_pieces(axes));
  return text + ")";
}

struct Golden {
  const char* name;
  const char* model;
  const char* mesh;
  MindSporeDataset dataset;
  double weighted_bytes;
  std::vector<std::string> strategies;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

const Golden kGoldens[] = {
    {"G1_2020", kTwoMatMuls, "x=16", MindSporeDataset::kFree, 27646, {"(16,1,1)", "(16,1,1)"}},
    {"G1_2021", kTwoMatMuls, "x=4, y=4", MindSporeDataset::kAsDecided, 44030, {"(16,1,1)", "(16,1,1)"}},
    {"G5_2021", kColumn, "x=8", MindSporeDataset::kAsDecided, 8832, {"(1,1,1)", "(1,1)"}},
    {"G7_2021", kCube, "x=2, y=4", MindSporeDataset::kAsDecided, 1069056, {"(1,1,1)", "(1,1,1)"}},
    {"G9_2020", kMul, "x=2, y=8", MindSporeDataset::kFree, 98303, {"(16,1,1,1)"}},
};

class MindSporeGolden : public testing::TestWithParam<Golden> {};

TEST_P(MindSporeGolden, IsFound) {
  const Golden& golden = GetParam();
  const Model model = read_model_text(golden.model, "golden.yaml");
  const DeviceMesh mesh = DeviceMesh::parse(golden.mesh);
  UserStrategies decided = resolve_user_strategies(model.graph, mesh, {});
  for (const TensorId id : model.graph.tensors().ids()) {  // full_batch
    const GraphTensor& tensor = model.graph.tensor(id);
    if (tensor.kind == TensorKind::kInput) decided.stored[id] = TensorLayout::replicated(tensor.type.shape.size());
  }
  const MindSporeModel tested(model.graph, mesh, decided, golden.dataset);
  for (const char* search : {"auto", "elimination", "ilp"}) {
    SearchOptions options;
    const PlanResult found = make_search(search)->search(tested.problem(), options);
    ASSERT_EQ(found.status, PlanStatus::kOptimal) << search;
    EXPECT_EQ(MindSporeValue{found.cost}.weighted_bytes(), golden.weighted_bytes) << search;
    const auto chosen = tested.strategies(*found.choice);
    IdVector<OperatorId, Strategy> strategies;
    for (const OperatorId op : model.graph.operators().ids()) {
      strategies.push_back(chosen[op].value());
      EXPECT_EQ(cuts_text(strategies[op]), golden.strategies[op.value()]) << search;
    }
    // `value` of given strategies equals the problem's.
    EXPECT_EQ(tested.value(strategies), MindSporeValue{found.cost}) << search;
  }
}
INSTANTIATE_TEST_SUITE_P(MindSporeModelTest, MindSporeGolden, testing::ValuesIn(kGoldens),
                         [](const auto& tested) { return std::string(tested.param.name); });

// `value` of a random choice equals its cost in the problem, including edges through reshapes and shared parameters.
TEST(MindSporeModelTest, ValueIsTheProblemsOnRandomChoices) {
  const Model model = read_model_text(R"(
shardplan: 1
inputs: {x: [16, 8, 32]}
parameters: {w: [32, 32], shared: [64, 32]}
operators:
  flat:  {op: Reshape, in: x, shape: [128, 32]}
  a:     {op: MatMul, in: [flat, w]}
  cubic: {op: Reshape, in: a, shape: [16, 8, 32]}
  norm:  {op: Softmax, in: cubic, axis: -1}
  up:    {op: MatMul, in: [a, shared], transpose_b: true}
  down:  {op: MatMul, in: [up, shared]}
  sum:   {op: ReduceSum, in: norm, axis: [1]}
)",
                                      "random.yaml");
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=4");
  const UserStrategies decided = resolve_user_strategies(model.graph, mesh, {});
  const MindSporeModel tested(model.graph, mesh, decided);
  Random random(3);
  int num_feasible = 0;
  for (int round = 0; round < 400; ++round) {
    Choice choice;
    for (const NodeId node : tested.problem().nodes.ids()) {
      choice.strategy.push_back(StrategyId(random.below(tested.problem().num_strategies(node))));
    }
    const Evaluation evaluation = evaluate(tested.problem(), choice);
    const auto chosen = tested.strategies(choice);
    IdVector<OperatorId, Strategy> strategies;
    for (const OperatorId op : model.graph.operators().ids()) strategies.push_back(chosen[op].value_or(Strategy()));
    std::string why;
    const auto value = tested.value(strategies, &why);
    ASSERT_EQ(value.has_value(), evaluation.forbidden_count == 0) << why;
    if (!value) {
      EXPECT_EQ(why, "down cuts shared otherwise than up");
      continue;
    }
    ++num_feasible;
    EXPECT_EQ(value->parts, evaluation.value({1, 1}));
  }
  EXPECT_GT(num_feasible, 20);
}

TEST(MindSporeModelTest, ItsPlanIsPlannedAndCostedByTheCluster) {
  const auto model = std::make_shared<const Model>(read_model("configs/mlp.yaml"));
  const ModelPlanner planner(model, read_cluster("ascend-910"), {});
  const Plan theirs = planner.mindspore_plan(Level::kSpeed, "auto");
  const Plan ours = planner.plan(Level::kSpeed, "auto");
  ASSERT_TRUE(theirs.mindspore);
  EXPECT_EQ(theirs.mindspore->cost, theirs.mindspore->bound);
  EXPECT_EQ(planner.mindspore_value(theirs.strategies), theirs.mindspore->cost);
  // Each is the best of its own.
  EXPECT_LE(ours.time.step(), theirs.time.step());
  const auto value = planner.mindspore_value(ours.strategies);
  EXPECT_TRUE(!value || value->parts >= theirs.mindspore->cost.parts);
}

}  // namespace
}  // namespace shardplan
