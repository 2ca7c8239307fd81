#include "solver/presolve/isolated_nodes.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

TEST(IsolatedNodesTest, IsExact) {
  std::size_t num_fixed = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomProblemOptions options = random_options(random);
    options.edge_percent = 15;
    const StrategyProblem problem = random_problem(random, options);
    ReductionGraph graph = graph_of(problem);
    if (graph.is_infeasible()) continue;
    num_fixed += fix_isolated_nodes(graph);
    expect_exact(problem, graph);
    if (HasFailure()) return;
  }
  EXPECT_GT(num_fixed, 100u);
}

TEST(IsolatedNodesTest, TheCheapestIsTakenIfItIsTheSmallest) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{5, 0}, {2, 0}, {2, 0}}}};
  problem.usage_tables = {{{0, 7, 3}}, {{3, 7, 3}}};
  problem.nodes = {{StrategyTableId(0), {{UsageTableId(0), 0, 1}}}, {StrategyTableId(0), {{UsageTableId(1), 0, 1}}}};
  problem.memory_limits = {100};
  ReductionGraph graph = graph_of(problem);
  EXPECT_EQ(fix_isolated_nodes(graph), 1u);
  EXPECT_TRUE(graph.node(0).is_alive);  // its cheapest strategies hold more than its first
  EXPECT_FALSE(graph.node(1).is_alive);
  EXPECT_EQ(graph.constant_cost(), 2);
  EXPECT_EQ(graph.expand({0, 0}).strategy[NodeId(1)], StrategyId(2));
}

}  // namespace
}  // namespace shardplan
