#include "solver/presolve/degree_two.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

TEST(DegreeTwoTest, IsExact) {
  std::size_t num_joined = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    StrategyProblem problem = random_problem(random, {.max_nodes = 8, .forbidden_percent = 10, .edge_percent = 30});
    for (const NodeId id : problem.nodes.ids()) {
      if (random.below(4) > 0) problem.nodes[id].memory.clear();
    }
    ReductionGraph graph = graph_of(problem);
    if (graph.is_infeasible()) continue;
    num_joined += join_degree_two(graph, Deadline(0, {}));
    expect_exact(problem, graph);
    if (HasFailure()) return;
  }
  EXPECT_GT(num_joined, 30u);
}

TEST(DegreeTwoTest, AChainBecomesAnEdge) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{3, 0}, {1, 0}, {2, 0}}}};
  problem.matrices = {{3, 3, {0, 4, 1, 2, 0, 9, 7, 3, 0}}};
  constexpr std::size_t kNodes = 33;
  for (std::size_t i = 0; i < kNodes; ++i) problem.nodes.push_back({StrategyTableId(0), {}});
  for (std::size_t i = 0; i + 1 < kNodes; ++i) problem.edges.push_back({NodeId(i), NodeId(i + 1), MatrixId(0)});
  ReductionGraph graph = graph_of(problem);
  // A table between nodes that are far apart can fall into one part for each end; then the chain ends there.
  EXPECT_GT(join_degree_two(graph, Deadline(0, {})), kNodes - 5);
  // The least cost of the chain, node by node.
  std::vector<std::int64_t> least = {3, 1, 2};
  for (std::size_t i = 1; i < kNodes; ++i) {
    std::vector<std::int64_t> next(3, kForbidden);
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t b = 0; b < 3; ++b) {
        next[b] = std::min(next[b], least[a] + problem.matrices[MatrixId(0)].at(a, b) +
                                        problem.strategy_tables[StrategyTableId(0)].costs[b].computation);
      }
    }
    least = next;
  }
  std::int64_t found = kForbidden;
  for_each_values(graph, [&](const std::vector<std::uint32_t>& values) {
    const auto cost = cost_in_graph(graph, values);
    ASSERT_TRUE(cost);
    EXPECT_EQ(evaluate(problem, graph.expand(values)).value({}), *cost);
    found = std::min(found, *cost);
  });
  EXPECT_EQ(found, *std::min_element(least.begin(), least.end()));
}

TEST(DegreeTwoTest, ATableLargerThanBothIsNotMade) {
  const auto joined = [](std::size_t ends, std::size_t middle) {
    StrategyProblem problem;
    Random random(3);
    StrategyTable large, small;
    large.costs.resize(ends);
    small.costs.resize(middle);
    problem.strategy_tables = {large, small};
    CostMatrix in{static_cast<std::uint32_t>(ends), static_cast<std::uint32_t>(middle), {}};
    CostMatrix out{static_cast<std::uint32_t>(middle), static_cast<std::uint32_t>(ends), {}};
    for (std::size_t i = 0; i < ends * middle; ++i) in.costs.push_back(static_cast<std::int64_t>(random.below(1000)));
    for (std::size_t i = 0; i < ends * middle; ++i) out.costs.push_back(static_cast<std::int64_t>(random.below(1000)));
    problem.matrices = {in, out};
    problem.nodes = {{StrategyTableId(0), {}}, {StrategyTableId(1), {}}, {StrategyTableId(0), {}}};
    problem.edges = {{NodeId(0), NodeId(1), MatrixId(0)}, {NodeId(1), NodeId(2), MatrixId(1)}};
    ReductionGraph graph = graph_of(problem);
    return join_degree_two(graph, Deadline(0, {}));
  };
  EXPECT_EQ(joined(64, 2), 1u);   // 4096 entries are made in any case
  EXPECT_EQ(joined(65, 2), 0u);   // 4225 would replace 260
  EXPECT_EQ(joined(65, 33), 1u);  // 4225 replace 4290
}

}  // namespace
}  // namespace shardplan
