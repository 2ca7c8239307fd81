#include "solver/presolve/dominance.h"

#include <gtest/gtest.h>

#include "solver/presolve/reduction_memory.h"
#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

TEST(DominanceTest, IsExact) {
  std::size_t num_removed = 0;
  for_random_graphs(400, [&](const StrategyProblem& problem, ReductionGraph& graph) {
    simplify_memory(graph);
    graph.settle();
    if (graph.is_infeasible()) return;
    num_removed += remove_dominated_values(graph, Deadline(0, {}));
    expect_exact(problem, graph);
  });
  EXPECT_GT(num_removed, 150u);
}

/// Strategy 1 of node 0 costs 3 more than strategy 0, and is cheaper at the edge by as much as given: does it go?
bool is_removed(std::int64_t cheaper_at_edge, Bytes bytes) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{0, 0}, {3, 0}}}, {{{0, 0}, {0, 0}}}};
  problem.usage_tables = {{{bytes, 1}}};
  problem.matrices = {{2, 2, {5, 0, 5 - cheaper_at_edge, 9}}};
  problem.nodes = {{StrategyTableId(0), {{UsageTableId(0), 0, 1}}}, {StrategyTableId(1), {}}};
  problem.edges = {{NodeId(0), NodeId(1), MatrixId(0)}};
  problem.memory_limits = {1};
  ReductionGraph graph = graph_of(problem);
  remove_dominated_values(graph, Deadline(0, {}));
  return graph.num_values(0) == 1;
}

TEST(DominanceTest, AValueGoesIfAnotherIsNeverWorse) {
  EXPECT_TRUE(is_removed(3, 1));   // what it gains at the edge does not make up for what it costs
  EXPECT_FALSE(is_removed(4, 1));  // it does
  EXPECT_FALSE(is_removed(3, 2));  // the other holds more
}

TEST(DominanceTest, OfEqualValuesTheFirstStays) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{4, 0}, {4, 0}, {4, 0}}}};
  problem.nodes = {{StrategyTableId(0), {}}};
  ReductionGraph graph = graph_of(problem);
  EXPECT_EQ(remove_dominated_values(graph, Deadline(0, {})), 2u);
  EXPECT_EQ(*graph.node(0).values, std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace shardplan
