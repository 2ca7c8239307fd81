#include "solver/searches/propagation_search.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

/// A chain of nodes with the same table and the same matrix between neighbours.
StrategyProblem chain(std::size_t nodes, StrategyTable table, std::vector<std::int64_t> matrix) {
  StrategyProblem problem;
  const auto size = static_cast<std::uint32_t>(table.costs.size());
  problem.strategy_tables = {std::move(table)};
  problem.matrices = {{size, size, std::move(matrix)}};
  for (std::size_t i = 0; i < nodes; ++i) problem.nodes.push_back({StrategyTableId(0), {}});
  for (std::size_t i = 0; i + 1 < nodes; ++i) problem.edges.push_back({NodeId(i), NodeId(i + 1), MatrixId(0)});
  return problem;
}

TEST(PropagationSearchTest, FollowsTheUsersStrategyAlongTheEdges) {
  // Equal strategies need no redistribution, and redistributions cost more than all strategies.
  StrategyProblem problem = chain(5, {{{1, 0}, {2, 0}, {3, 0}}}, {0, 99, 99, 99, 0, 99, 99, 99, 0});
  const StrategyTableId one = problem.strategy_tables.push_back({{{7, 0}}});
  problem.nodes[NodeId(2)].strategies = one;  // the user's
  const MatrixId to_it = problem.matrices.push_back({3, 1, {99, 0, 99}});
  const MatrixId from_it = problem.matrices.push_back({1, 3, {99, 0, 99}});
  problem.edges[EdgeId(1)].matrix = to_it;
  problem.edges[EdgeId(2)].matrix = from_it;
  const PlanResult result = make_propagation_search()->search(problem, {});
  ASSERT_TRUE(result.choice);
  EXPECT_EQ(result.choice->strategy,
            (IdVector<NodeId, StrategyId>{StrategyId(1), StrategyId(1), StrategyId(0), StrategyId(1), StrategyId(1)}));
  EXPECT_EQ(result.cost, 2 + 2 + 7 + 2 + 2);
  EXPECT_EQ(result.found_by, "propagation");
}

TEST(PropagationSearchTest, BoundsByTheLeastOfEachNodeAndEdge) {
  const StrategyProblem problem = chain(3, {{{4, 1}, {3, 9}}}, {8, 7, 6, 5});
  const PlanResult result = make_propagation_search()->search(problem, {});
  EXPECT_EQ(result.lower_bound, 3 * 5 + 2 * 5);
}

TEST(PropagationSearchTest, RepairsLimitsThatThePassBreaks) {
  StrategyProblem problem = chain(4, {{{1, 0}, {2, 0}}}, {0, 5, 5, 0});
  problem.usage_tables = {{{10, 4}}};
  for (ProblemNode& node : problem.nodes) node.memory = {{UsageTableId(0), 0, 1}};
  problem.memory_limits = {30};
  const PlanResult result = make_propagation_search()->search(problem, {});
  ASSERT_TRUE(result.choice);
  EXPECT_TRUE(evaluate(problem, *result.choice).feasible);
  EXPECT_GE(result.cost, *brute_force(problem));
}

TEST(PropagationSearchTest, ImprovesAGivenStartBesideItsOwnPass) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    SearchOptions options;
    const PlanResult alone = make_propagation_search()->search(problem, options);
    options.start.emplace();
    for (const NodeId node : problem.nodes.ids()) {
      options.start->strategy.push_back(StrategyId(random.below(problem.num_strategies(node))));
    }
    const PlanResult both = make_propagation_search()->search(problem, options);
    if (!alone.choice) continue;
    ASSERT_TRUE(both.choice);
    EXPECT_LE(both.cost, alone.cost);
  }
}

}  // namespace
}  // namespace shardplan
