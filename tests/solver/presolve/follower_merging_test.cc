#include "solver/presolve/follower_merging.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

TEST(FollowerMergingTest, IsExact) {
  std::size_t num_merged = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    StrategyProblem problem = random_problem(random, {.forbidden_percent = 10, .limit_percent = 80});
    // Many edges leave each row one column.
    for (const EdgeId id : problem.edges.ids()) {
      if (random.below(2) == 0) continue;
      CostMatrix matrix = problem.matrices[problem.edges[id].matrix];
      const std::size_t shift = random.below(4);
      for (std::size_t row = 0; row < matrix.rows; ++row) {
        for (std::size_t column = 0; column < matrix.columns; ++column) {
          if ((row + shift) % matrix.columns != column) matrix.costs[row * matrix.columns + column] = kForbidden;
        }
      }
      problem.edges[id].matrix = problem.matrices.push_back(std::move(matrix));
    }
    ReductionGraph graph = graph_of(problem);
    const std::size_t before = graph.num_alive();
    const std::size_t merged = merge_followers(graph, 1'000'000, Deadline(0, {}));
    EXPECT_EQ(graph.num_alive(), before - merged);
    num_merged += merged;
    expect_exact(problem, graph);
    if (HasFailure()) return;
  }
  EXPECT_GT(num_merged, 30u);
}

/// Node 0 of four strategies decides node 1 of two, which has an edge to node 2 of three.
StrategyProblem pair_and_reader() {
  StrategyProblem problem;
  problem.strategy_tables = {{{{1, 0}, {2, 0}, {3, 0}, {4, 0}}}, {{{10, 0}, {20, 0}}}, {{{0, 0}, {0, 0}, {0, 0}}}};
  problem.matrices = {{4, 2, {0, kForbidden, kForbidden, 0, 0, kForbidden, kForbidden, 0}}, {2, 3, {0, 5, 9, 7, 0, 2}}};
  for (std::size_t i = 0; i < 3; ++i) problem.nodes.push_back({StrategyTableId(i), {}});
  problem.edges = {{NodeId(0), NodeId(1), MatrixId(0)}, {NodeId(1), NodeId(2), MatrixId(1)}};
  return problem;
}

TEST(FollowerMergingTest, TheDeterminedNodeJoinsTheOther) {
  const StrategyProblem problem = pair_and_reader();
  ReductionGraph graph = graph_of(problem);
  EXPECT_EQ(merge_followers(graph, 1000, Deadline(0, {})), 1u);
  EXPECT_TRUE(graph.node(0).is_alive);
  EXPECT_FALSE(graph.node(1).is_alive);
  EXPECT_EQ(graph.num_entries(), 4 * 3);
  expect_exact(problem, graph);
}

TEST(FollowerMergingTest, LeavesWhatWouldMakeTablesTooLarge) {
  const StrategyProblem problem = pair_and_reader();
  ReductionGraph graph = graph_of(problem);
  // There are 4 x 2 + 2 x 3 entries, and the table to the reader would grow from 2 x 3 to 4 x 3.
  EXPECT_EQ(merge_followers(graph, 4 * 2 + 4 * 3 - 1, Deadline(0, {})), 0u);
  EXPECT_EQ(graph.num_alive(), 3u);
}

}  // namespace
}  // namespace shardplan
