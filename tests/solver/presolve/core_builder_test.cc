#include "solver/presolve/core_builder.h"

#include <gtest/gtest.h>

#include "solver/presolve/reduction_memory.h"
#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

TEST(CoreBuilderTest, ACoreSaysOfEveryChoiceWhatTheGraphDoes) {
  int num_feasible = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomProblemOptions options = random_options(random);
    options.largest_cost = std::min<std::int64_t>(options.largest_cost, 1000);
    const StrategyProblem problem = random_problem(random, options);
    ReductionGraph graph = graph_of(problem);
    while (!graph.is_infeasible()) {  // until no value is marked
      simplify_memory(graph);
      const bool is_clean = [&] {
        for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
          if (!graph.node(id).marked.empty()) return false;
        }
        return true;
      }();
      if (is_clean) break;
      graph.settle();
    }
    if (graph.is_infeasible()) continue;
    ReductionGraph whole = graph;  // building takes the edges
    const BuiltCore built = build_core(graph, std::nullopt);
    EXPECT_TRUE(built.is_infeasibility_certain);
    ASSERT_EQ(built.nodes.size(), graph.num_alive());
    for_each_values(whole, [&](const std::vector<std::uint32_t>& values) {
      CoreChoice choice;
      for (const std::uint32_t id : built.nodes) choice.push_back(values[id]);
      const CoreEvaluation evaluation = evaluate(built.core, choice);
      const auto cost = cost_in_graph(whole, values);
      EXPECT_EQ(evaluation.cost < built.core.big_m, cost.has_value()) << describe(problem);
      if (cost) {
        EXPECT_EQ(static_cast<std::int64_t>(evaluation.cost) + graph.constant_cost(), *cost) << describe(problem);
        num_feasible += evaluation.excess == 0;
      }
      EXPECT_EQ(evaluation.excess == 0, fits_in_graph(whole, values)) << describe(problem);
    });
    if (HasFailure()) return;
  }
  EXPECT_GT(num_feasible, 300);
}

TEST(CoreBuilderTest, BigMIsJustAboveAKnownCost) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{10, 0}, {90, 0}}}};
  problem.nodes = {{StrategyTableId(0), {}}};
  ReductionGraph graph = graph_of(problem);
  const BuiltCore free = build_core(graph, std::nullopt);
  EXPECT_EQ(graph.constant_cost(), 10);
  EXPECT_EQ(free.core.big_m, 80 + 1);  // more than any choice
  const BuiltCore known = build_core(graph, 35);
  EXPECT_EQ(known.core.big_m, 25 + 1);
  EXPECT_FALSE(known.is_infeasibility_certain);  // a choice may cost more than what is known
}

TEST(CoreBuilderTest, EqualRowsAndColumnsAreOneClass) {
  const CoreMatrix matrix = make_core_matrix({3, 3, {1, 2, 1, 1, 2, 1, kForbidden, 4, kForbidden}}, 100);
  EXPECT_EQ(matrix.row_class, (std::vector<std::uint32_t>{0, 0, 1}));
  EXPECT_EQ(matrix.column_class, (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(matrix.forward, (std::vector<double>{1, 2, 100, 4}));
  EXPECT_EQ(matrix.backward, (std::vector<double>{1, 100, 2, 4}));
}

}  // namespace
}  // namespace shardplan
