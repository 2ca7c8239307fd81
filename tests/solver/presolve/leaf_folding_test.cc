#include "solver/presolve/leaf_folding.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

TEST(LeafFoldingTest, IsExact) {
  std::size_t num_folded = 0;
  for_random_graphs(400, [&](const StrategyProblem& problem, ReductionGraph& graph) {
    num_folded += fold_leaves(graph, Deadline(0, {}));
    expect_exact(problem, graph);
  });
  EXPECT_GT(num_folded, 30u);
}

/// A leaf of two strategies that hold as many bytes as given; the first is cheaper. Does it fold? Its neighbour, a leaf
/// as well, does not: which of its strategies is best in bytes is not best in cost for each of the leaf's.
bool is_folded(Bytes first, Bytes second) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{0, 0}, {0, 0}}}, {{{1, 0}, {2, 0}}}};
  problem.usage_tables = {{{first, second}}, {{0, 1}}};
  problem.matrices = {{2, 2, {1, 9, 2, 3}}};
  problem.nodes = {{StrategyTableId(0), {{UsageTableId(1), 0, 1}}}, {StrategyTableId(1), {{UsageTableId(0), 0, 1}}}};
  problem.edges = {{NodeId(0), NodeId(1), MatrixId(0)}};
  problem.memory_limits = {100};
  ReductionGraph graph = graph_of(problem);
  fold_leaves(graph, Deadline(0, {}));
  return !graph.node(1).is_alive;
}

TEST(LeafFoldingTest, ALeafFoldsIfTheCheapestIsTheSmallest) {
  EXPECT_TRUE(is_folded(4, 4));
  EXPECT_TRUE(is_folded(4, 5));
  EXPECT_FALSE(is_folded(5, 4));
}

TEST(LeafFoldingTest, ATreeFoldsUpToOneNode) {
  StrategyProblem problem = layered_problem({.layers = 1, .width = 4, .strategies = 5});  // a chain
  for (ProblemNode& node : problem.nodes) node.memory.clear();
  ReductionGraph graph = graph_of(problem, false);
  const std::size_t before = graph.num_alive();
  EXPECT_EQ(fold_leaves(graph, Deadline(0, {})), before - 1);
}

}  // namespace
}  // namespace shardplan
