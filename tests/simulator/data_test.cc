#include "simulator/execute/data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

/// `more`: another input, read by its own operator.
OperatorGraph drawn_graph(bool more = false, const std::string& training = "") {
  return planned_graph(read_model_text(std::string(R"(
shardplan: 1
inputs:
  x: [6, 48]
  tokens: {shape: [6], dtype: i32}
)") + (more ? "  another: [7, 7]\n" : "") + R"(
parameters: {table: [10, 48], gamma: [48], beta: [48], w: [48, 5]}
constants:
  mask: {shape: [3, 4], fill: causal}
  places: {shape: [2, 5], dtype: i32, fill: iota}
  half: 0.5
operators:
  rows: {op: Gather, in: [table, tokens], axis: 0}
  sum:  {op: Add, in: [x, rows]}
  norm: {op: LayerNorm, in: [sum, gamma, beta]}
  drop: {op: Dropout, in: norm, keep_prob: 0.5}
  fc:   {op: MatMul, in: [drop, w]}
  loss: {op: ReduceSum, in: fc}
  m:    {op: Mul, in: [mask, half]}
  p:    {op: Abs, in: places}
)" + (more ? "  q:    {op: Abs, in: another}\n" : "") +
                                           R"(
loss: loss
outputs: [m, p)" + (more ? ", q" : "") + "]\n" +
                                           training,
                                       "m.yaml"));
}

TensorValues draw(const OperatorGraph& graph, const std::string& name, std::uint64_t seed = 1, std::uint64_t step = 0,
                  States states = States::kRandom) {
  return draw_tensor(graph, *graph.find_tensor(name), seed, step, states);
}

double largest(const TensorValues& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

TEST(DataTest, NumbersLieWhereTheHeaderSays) {
  const OperatorGraph graph = drawn_graph();
  const TensorValues x = draw(graph, "x");
  EXPECT_EQ(x.size(), 6u * 48u);
  EXPECT_LE(largest(x), 1);
  EXPECT_LT(*std::min_element(x.begin(), x.end()), -0.8);
  EXPECT_GT(*std::max_element(x.begin(), x.end()), 0.8);
  for (const double token : draw(graph, "tokens")) {
    EXPECT_EQ(token, std::floor(token));
    EXPECT_TRUE(token >= 0 && token < 10) << "indices into a table of 10 rows";
  }
  // w sums up 48 numbers: within sqrt(3 / 48) = 1/4, and nearly as large.
  EXPECT_LE(largest(draw(graph, "w")), 0.25);
  EXPECT_GT(largest(draw(graph, "w")), 0.22);
  for (const double scale : draw(graph, "gamma")) EXPECT_TRUE(scale >= 0.5 && scale <= 1.5) << "around 1";
}

TEST(DataTest, WhereElementsAreComparedIndicesDifferInARow) {
  const auto tokens = [](const std::string& op) {
    const OperatorGraph graph = planned_graph(read_model_text(R"(
shardplan: 1
inputs: {tokens: {shape: [40, 6], dtype: i32}}
parameters: {table: [7, 1]}
operators:
  rows: {op: Gather, in: [table, tokens], axis: 0}
  s:    {op: Squeeze, in: rows, axis: 2}
  y:    )" + op + "\n",
                                                              "m.yaml"));
    return draw(graph, "tokens");
  };
  const auto num_rows_of_distinct = [](const TensorValues& values) {
    int count = 0;
    for (std::size_t first = 0; first < values.size(); first += 6) {
      count += std::set<double>(values.begin() + static_cast<std::ptrdiff_t>(first),
                                values.begin() + static_cast<std::ptrdiff_t>(first + 6))
                           .size() == 6
                   ? 1
                   : 0;
    }
    return count;
  };
  const TensorValues compared = tokens("{op: TopK, in: s, k: 2, out: [values, places]}");
  EXPECT_EQ(num_rows_of_distinct(compared), 40);
  EXPECT_EQ(*std::ranges::min_element(compared), 0);
  EXPECT_EQ(*std::ranges::max_element(compared), 6);
  EXPECT_LT(num_rows_of_distinct(tokens("{op: Softmax, in: s}")), 20);
}

TEST(DataTest, ConstantsHoldTheirFill) {
  const OperatorGraph graph = drawn_graph();
  EXPECT_EQ(draw(graph, "half"), TensorValues{0.5});
  EXPECT_EQ(draw(graph, "places"), (TensorValues{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_EQ(draw(graph, "mask"), (TensorValues{0, -1e9, -1e9, -1e9, 0, 0, -1e9, -1e9, 0, 0, 0, -1e9}));
}

TEST(DataTest, DependOnSeedNameAndForInputsOnTheStep) {
  const OperatorGraph graph = drawn_graph();
  const OperatorGraph other = drawn_graph(true);
  for (const char* name : {"x", "tokens", "table", "w", "gamma"}) {
    const TensorValues values = draw(graph, name);
    EXPECT_EQ(draw(graph, name), values) << name;
    EXPECT_EQ(draw(other, name), values) << name << " changes when another tensor is added";
    EXPECT_NE(draw(graph, name, 2), values) << name;
    const bool is_input = graph.tensor(*graph.find_tensor(name)).kind == TensorKind::kInput;
    EXPECT_EQ(draw(graph, name, 1, 5) != values, is_input) << name;
  }
  EXPECT_NE(draw(graph, "beta"), draw(graph, "gamma"));
}

TEST(DataTest, StatesBeginSmallOrFresh) {
  const OperatorGraph graph = drawn_graph(false, "training: {optimizer: adam, learning_rate: 0.1}\n");
  std::size_t states = 0;
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (tensor.kind != TensorKind::kState || tensor.is_master_copy) continue;
    ++states;
    for (const double value : draw_tensor(graph, id, 1, 0, States::kFresh)) EXPECT_EQ(value, 0) << tensor.name;
    for (const double value : draw_tensor(graph, id, 1, 0)) {
      EXPECT_GE(value, 0) << tensor.name;
      EXPECT_LT(value, tensor.type.shape.empty() ? 8 : 0.01) << tensor.name;
    }
  }
  EXPECT_GT(states, 7u);
}

TEST(DataTest, GradientsDrawWhatTheirOperatorDrew) {
  const OperatorGraph graph = drawn_graph(false, "training: {optimizer: sgd, learning_rate: 0.1}\n");
  const OperatorId drop = *graph.find_operator("drop");
  std::size_t again = 0;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    if (id == drop) continue;
    const bool is_same = operator_seed(graph, id, 1, 0) == operator_seed(graph, drop, 1, 0);
    EXPECT_EQ(is_same, op.forward == drop && graph.operation(id).type->draws_as_forward) << op.name;
    again += is_same ? 1 : 0;
  }
  EXPECT_NE(operator_seed(graph, drop, 1, 0), operator_seed(graph, drop, 1, 1));
  EXPECT_NE(operator_seed(graph, drop, 1, 0), operator_seed(graph, drop, 2, 0));
}

TEST(DataTest, FloatsAreRoundedIntegersAreNot) {
  TensorValues values = {0.1, 16777217};
  round_to(Precision::kFloat64, DataType::kF32, values);
  EXPECT_EQ(values, (TensorValues{0.1, 16777217}));
  round_to(Precision::kFloat32, DataType::kI32, values);
  EXPECT_EQ(values, (TensorValues{0.1, 16777217}));
  round_to(Precision::kFloat32, DataType::kBF16, values);
  EXPECT_EQ(values, (TensorValues{static_cast<double>(0.1F), 16777216}));
}

}  // namespace
}  // namespace shardplan
