// Sharding problems of real models with up to some twenty operators, solved by code that shares nothing with the
// searches: by trying all choices if there are few, else by dynamic programming over one node after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/read_model.h"
#include "solver/searches/search_list.h"
#include "tests/support/planned_model.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

/// Costs of all combinations of some nodes' strategies; the last node's varies fastest.
struct Table {
  std::vector<std::size_t> nodes;
  std::vector<std::int64_t> costs;
};

std::int64_t plus(std::int64_t a, std::int64_t b) { return std::min(a + b, kForbidden); }

std::size_t count(const StrategyProblem& problem, std::size_t node) { return problem.num_strategies(NodeId(node)); }

/// Adds up the tables over all their nodes except `gone`, at the best strategy of that one.
Table eliminate(const StrategyProblem& problem, std::size_t gone, const std::vector<Table>& tables) {
  std::set<std::size_t> others;
  for (const Table& table : tables) others.insert(table.nodes.begin(), table.nodes.end());
  others.erase(gone);
  Table result{{others.begin(), others.end()}, {}};
  std::map<std::size_t, std::size_t> value;
  std::size_t size = 1;
  for (const std::size_t node : result.nodes) size *= count(problem, node);
  for (std::size_t at = 0; at < size; ++at) {
    std::size_t rest = at;
    for (std::size_t i = result.nodes.size(); i-- > 0;) {
      value[result.nodes[i]] = rest % count(problem, result.nodes[i]);
      rest /= count(problem, result.nodes[i]);
    }
    std::int64_t best = kForbidden;
    for (value[gone] = 0; value[gone] < count(problem, gone); ++value[gone]) {
      std::int64_t cost = 0;
      for (const Table& table : tables) {
        std::size_t position = 0;
        for (const std::size_t node : table.nodes) position = position * count(problem, node) + value[node];
        cost = plus(cost, table.costs[position]);
      }
      best = std::min(best, cost);
    }
    result.costs.push_back(best);
  }
  return result;
}

/// The least computation + communication without memory limits; kForbidden if there is no choice.
std::int64_t least_cost_by_tables(const StrategyProblem& problem) {
  std::vector<Table> tables;
  for (const NodeId id : problem.nodes.ids()) {
    Table table{{id.value()}, {}};
    for (const Cost& cost : problem.strategy_tables[problem.nodes[id].strategies].costs) {
      table.costs.push_back(plus(cost.computation, cost.communication));
    }
    tables.push_back(std::move(table));
  }
  for (const ProblemEdge& edge : problem.edges) {
    tables.push_back({{edge.from.value(), edge.to.value()}, problem.matrices[edge.matrix].costs});
  }
  std::set<std::size_t> left;
  for (const NodeId id : problem.nodes.ids()) left.insert(id.value());
  std::int64_t sum = 0;
  while (!left.empty()) {
    // The node whose elimination makes the smallest table.
    std::size_t best = 0;
    double smallest = 1e300;
    for (const std::size_t node : left) {
      std::set<std::size_t> touched;
      for (const Table& table : tables) {
        if (std::find(table.nodes.begin(), table.nodes.end(), node) == table.nodes.end()) continue;
        touched.insert(table.nodes.begin(), table.nodes.end());
      }
      double size = 1;
      for (const std::size_t other : touched) size *= static_cast<double>(count(problem, other));
      if (size < smallest) {
        smallest = size;
        best = node;
      }
    }
    if (smallest > 3e7) throw std::runtime_error("too wide for this test");
    std::vector<Table> joined, others;
    for (Table& table : tables) {
      const bool has = std::find(table.nodes.begin(), table.nodes.end(), best) != table.nodes.end();
      (has ? joined : others).push_back(std::move(table));
    }
    Table table = eliminate(problem, best, joined);
    if (table.nodes.empty()) {
      sum = plus(sum, table.costs.front());
    } else {
      others.push_back(std::move(table));
    }
    tables = std::move(others);
    left.erase(best);
  }
  return sum;
}

/// The same by trying everything; nothing if that would take too long.
std::optional<std::int64_t> least_cost_by_trying(const StrategyProblem& problem) {
  double choices = 1;
  for (const NodeId id : problem.nodes.ids()) choices *= static_cast<double>(problem.num_strategies(id));
  return choices > 1e5 ? std::nullopt : brute_force(problem, {1, 1});
}

struct SmallCase {
  const char* name;
  const char* text;
  std::vector<MeshAxis> axes;
  bool can_be_tried;
};
void PrintTo(const SmallCase& c, std::ostream* out) { *out << c.name; }

const char* kOneMatMul = R"(shardplan: 1
dims: {B: 4096, H: 2048, F: 4096}
inputs: {x: [B, H]}
parameters: {w: [H, F]}
operators: {y: {op: MatMul, in: [x, w]}}
)";
const char* kPerceptron = R"(shardplan: 1
dims: {B: 4096, H: 2048, F: 8192, C: 1024}
inputs: {x: [B, H]}
operators:
  up:    {block: nn.Dense, in: x, out_channels: F}
  relu:  {op: ReLU, in: up}
  down:  {block: nn.Dense, in: relu, out_channels: H}
  add:   {op: Add, in: [down, x]}
  norm:  {block: nn.LayerNorm, in: add}
  head:  {block: nn.Dense, in: norm, out_channels: C}
  probs: {op: Softmax, in: head}
)";
const char* kAttention = R"(shardplan: 1
dims: {B: 8, S: 1024, H: 2048, heads: 16, D: H/heads}
inputs: {x: [B, S, H]}
operators:
  q:      {block: nn.Dense, in: x, out_channels: H}
  k:      {block: nn.Dense, in: x, out_channels: H}
  v:      {block: nn.Dense, in: x, out_channels: H}
  qh:     {op: Reshape, in: q, shape: [B, S, heads, D]}
  kh:     {op: Reshape, in: k, shape: [B, S, heads, D]}
  vh:     {op: Reshape, in: v, shape: [B, S, heads, D]}
  qt:     {op: Transpose, in: qh, perm: [0, 2, 1, 3]}
  kt:     {op: Transpose, in: kh, perm: [0, 2, 1, 3]}
  vt:     {op: Transpose, in: vh, perm: [0, 2, 1, 3]}
  scores: {op: BatchMatMul, in: [qt, kt], transpose_b: true}
  probs:  {op: Softmax, in: scores}
  mixed:  {op: BatchMatMul, in: [probs, vt]}
  back:   {op: Transpose, in: mixed, perm: [0, 2, 1, 3]}
  flat:   {op: Reshape, in: back, shape: [B, S, H]}
  out:    {block: nn.Dense, in: flat, out_channels: H}
  add:    {op: Add, in: [out, x]}
)";

const SmallCase kCases[] = {
    {"one_matmul", kOneMatMul, {{"x", 8}}, true},
    {"one_matmul_on_two_axes", kOneMatMul, {{"x", 2}, {"y", 4}}, true},
    {"perceptron", kPerceptron, {{"x", 2}, {"y", 4}}, false},
    {"attention", kAttention, {{"x", 8}}, false},
    {"attention_on_two_axes", kAttention, {{"x", 2}, {"y", 4}}, false},
};

class ExactAnswer : public testing::TestWithParam<SmallCase> {};

TEST_P(ExactAnswer, IsThatOfEverySearchThatProvesIt) {
  const PlannedModel planned(read_model_text(GetParam().text, "m.yaml"), "ascend-910", GetParam().axes);
  const StrategyProblem& problem = planned.problem.problem;
  EXPECT_LE(planned.graph.operators().size(), 24u);
  const std::int64_t least = least_cost_by_tables(problem);
  ASSERT_LT(least, kForbidden);
  const std::optional<std::int64_t> tried = least_cost_by_trying(problem);
  EXPECT_EQ(tried.has_value(), GetParam().can_be_tried);
  EXPECT_EQ(tried.value_or(least), least);
  for (const char* name : {"ilp", "elimination", "auto"}) {
    const PlanResult found = make_search(name)->search(problem, {});
    EXPECT_EQ(found.status, PlanStatus::kOptimal) << name;
    EXPECT_EQ(found.cost, least) << name;
    EXPECT_EQ(found.lower_bound, least) << name;
  }
  const PlanResult propagated = make_search("propagation")->search(problem, {});
  ASSERT_TRUE(propagated.choice);
  EXPECT_GE(propagated.cost, least);
  std::printf("%s: least %lld ps, propagation %.1f %% above it\n", GetParam().name, static_cast<long long>(least),
              100.0 * static_cast<double>(propagated.cost - least) / static_cast<double>(least));
}
INSTANTIATE_TEST_SUITE_P(Models, ExactAnswer, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace shardplan
