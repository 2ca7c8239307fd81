#include "solver/presolve/reduction_graph.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

Positions positions(ReductionGraph& graph, std::vector<std::uint32_t> items) {
  return graph.shared().positions.intern(std::move(items));
}

/// Nodes 0 - 1 - 2 of two strategies each; node n's strategy s costs 10 n + s, edges cost 100, 101, 110, 111 (and times
/// ten for the second).
StrategyProblem chain() {
  StrategyProblem problem;
  problem.strategy_tables = {{{{0, 0}, {1, 0}}}, {{{10, 0}, {11, 0}}}, {{{20, 0}, {21, 0}}}};
  problem.matrices = {{2, 2, {100, 101, 110, 171}}, {2, 2, {1000, 1010, 1100, 1711}}};
  for (std::size_t i = 0; i < 3; ++i) problem.nodes.push_back({StrategyTableId(i), {}});
  problem.edges = {{NodeId(0), NodeId(1), MatrixId(0)}, {NodeId(1), NodeId(2), MatrixId(1)}};
  return problem;
}

TEST(ReductionGraphTest, SettlingKeepsEveryChoiceAndItsCost) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    ReductionGraph graph = graph_of(problem);
    expect_exact(problem, graph);
    if (!graph.is_infeasible()) {
      graph.remove_singles();
      expect_exact(problem, graph);
    }
    if (HasFailure()) return;
  }
}

TEST(ReductionGraphTest, KnowsWhenItRemembersMuch) {
  constexpr std::uint32_t kSize = 1700;
  Random random(5);
  StrategyProblem problem;
  problem.strategy_tables = {{std::vector<Cost>(kSize)}};
  std::vector<std::int64_t> costs(std::size_t{kSize} * kSize);
  for (std::int64_t& cost : costs) cost = static_cast<std::int64_t>(random.below(1000));
  problem.matrices = {{kSize, kSize, std::move(costs)}};
  problem.nodes = {{StrategyTableId(0), {}}, {StrategyTableId(0), {}}};
  problem.edges = {{NodeId(0), NodeId(1), MatrixId(0)}};
  ReductionGraph graph = graph_of(problem);
  graph.forget_results();
  EXPECT_FALSE(graph.remembers_much());
  for (std::uint32_t value = 0; value < 4; ++value) {
    graph.mark_for_removal(0, value);
    graph.settle();
  }
  EXPECT_TRUE(graph.remembers_much());
  graph.forget_results();
  EXPECT_FALSE(graph.remembers_much());
}

TEST(ReductionGraphTest, AFollowerBringsItsCostsAndEdges) {
  const StrategyProblem problem = chain();
  ReductionGraph graph = graph_of(problem);
  graph.follow(1, 0, positions(graph, {1, 0}));  // node 1 takes the other strategy than node 0
  graph.settle();
  EXPECT_EQ(graph.num_alive(), 2u);
  // 0 + 101 + 11 + 1100 + 20 where node 0 and node 2 take strategy 0.
  EXPECT_EQ(cost_in_graph(graph, {0, 0, 0}), 0 + 101 + 11 + 1100 + 20);
  EXPECT_EQ(evaluate(problem, graph.expand({0, 0, 0})).value({}), 0 + 101 + 11 + 1100 + 20);
  EXPECT_EQ(cost_in_graph(graph, {1, 0, 1}), evaluate(problem, graph.expand({1, 0, 1})).value({}));
}

TEST(ReductionGraphTest, AFollowersMemoryMovesToItsLeader) {
  StrategyProblem problem = chain();
  problem.usage_tables = {{{3, 5}}};
  problem.nodes[NodeId(1)].memory = {{UsageTableId(0), 0, 2}};
  problem.memory_limits = {4, 9};
  ReductionGraph graph = graph_of(problem);
  graph.follow(1, 2, positions(graph, {1, 0}));
  graph.follow(2, 0, positions(graph, {0, 0}));  // a follower's leader follows in turn
  graph.settle();
  graph.gather_memory();
  ASSERT_EQ(graph.node(0).memory.size(), 1u);
  EXPECT_EQ(*graph.node(0).memory[0].bytes, (std::vector<std::int64_t>{5, 5}));
  EXPECT_FALSE(fits_in_graph(graph, {0, 0, 0}));
  EXPECT_EQ(evaluate(problem, graph.expand({0, 0, 0})).worst_excess, 1);
}

TEST(ReductionGraphTest, ANodeBetweenTakesItsBestAnswer) {
  const StrategyProblem problem = chain();
  ReductionGraph graph = graph_of(problem);
  const std::int64_t before = graph.constant_cost();
  const TableRef zero = graph.shared().tables.intern(CostMatrix{2, 2, {0, 1, 2, 3}});
  const ReductionGraph::Between between = {graph.shared().tables.intern(CostMatrix{2, 2, {5, 1, 1, 5}}),
                                           graph.shared().tables.intern(CostMatrix{2, 2, {0, 0, 9, 1}}),
                                           graph.shared().numbers.intern({0, 0})};
  EXPECT_EQ(between.best(0, 0), 0u);  // 5 + 0 against 1 + 9
  EXPECT_EQ(between.best(0, 1), 1u);  // 5 + 0 against 1 + 1
  graph.replace_by_edge(1, 0, 2, zero, between);
  EXPECT_EQ(graph.num_alive(), 2u);
  EXPECT_EQ(graph.expand({0, 0, 1}).strategy[NodeId(1)], StrategyId(1));
  EXPECT_EQ(graph.expand({1, 0, 1}).strategy[NodeId(1)], StrategyId(0));
  EXPECT_EQ(graph.constant_cost(), before);
}

TEST(ReductionGraphTest, MarkedValuesGoAndTheirPartnersWithThem) {
  StrategyProblem problem = chain();
  problem.matrices[MatrixId(0)].costs = {kForbidden, 101, 110, kForbidden};
  ReductionGraph graph = graph_of(problem);
  graph.mark_for_removal(0, 1);
  graph.settle();
  EXPECT_EQ(*graph.node(0).values, std::vector<std::uint32_t>{0});
  EXPECT_EQ(*graph.node(1).values, std::vector<std::uint32_t>{1});
  graph.mark_for_removal(1, 0);
  graph.settle();
  EXPECT_TRUE(graph.is_infeasible());
  EXPECT_TRUE(graph.is_infeasibility_certain());
}

TEST(ReductionGraphTest, WhatCostsMoreThanTheKnownChoiceIsForbidden) {
  const StrategyProblem problem = chain();
  ReductionGraph graph(problem, {}, 1100, true, Deadline(0, {}));  // only the matrices' 1711 alone is above
  graph.settle();
  EXPECT_FALSE(graph.is_infeasible());
  EXPECT_FALSE(graph.is_infeasibility_certain());
  EXPECT_EQ(cost_in_graph(graph, {1, 1, 1}), std::nullopt);
}

TEST(ReductionGraphTest, GivesUpAtTheDeadlineWithoutACertainAnswer) {
  std::stop_source stop;
  stop.request_stop();
  ReductionGraph graph(chain(), {}, std::nullopt, true, Deadline(0, stop.get_token()));
  EXPECT_TRUE(graph.is_infeasible());
  EXPECT_FALSE(graph.is_infeasibility_certain());
}

}  // namespace
}  // namespace shardplan
