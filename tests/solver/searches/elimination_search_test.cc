#include "solver/searches/elimination_search.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

TEST(EliminationSearchTest, ProvesTrainingLayersWithoutMemoryLimits) {
  const StrategyProblem problem =
      layered_problem({.layers = 6, .width = 20, .strategies = 64, .training = true, .limit_percent = 200});
  const PlanResult result = make_elimination_search()->search(problem, {});
  EXPECT_EQ(result.status, PlanStatus::kOptimal);
  EXPECT_EQ(result.found_by, "elimination");
}

TEST(EliminationSearchTest, WithoutMemoryItIsExact) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomProblemOptions options = random_options(random);
    options.limit_percent = 150;
    const StrategyProblem problem = random_problem(random, options);
    const std::optional<std::int64_t> optimum = brute_force(problem);
    const PlanResult result = make_elimination_search()->search(problem, {});
    EXPECT_EQ(result.status, optimum ? PlanStatus::kOptimal : PlanStatus::kInfeasible) << describe(problem);
    if (optimum) {
      EXPECT_EQ(result.cost, *optimum) << describe(problem);
    }
    if (HasFailure()) return;
  }
}

TEST(EliminationSearchTest, PricesOfMemoryBoundAndOftenProve) {
  int num_binding = 0, num_proven = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 100);
    RandomProblemOptions options = random_options(random);
    options.limit_percent = 40;
    const StrategyProblem problem = random_problem(random, options);
    const std::optional<std::int64_t> optimum = brute_force(problem);
    StrategyProblem unlimited = problem;
    unlimited.memory_limits.assign(problem.memory_limits.size(), kUnlimitedBytes);
    if (!optimum || brute_force(unlimited) == optimum) continue;  // memory does not bind
    ++num_binding;
    const PlanResult result = make_elimination_search()->search(problem, {});
    EXPECT_LE(result.lower_bound, *optimum) << describe(problem);
    num_proven += result.status == PlanStatus::kOptimal;
  }
  EXPECT_GT(num_binding, 30);
  EXPECT_GT(num_proven, num_binding / 4);
}

TEST(EliminationSearchTest, TablesThatAreTooLargeEndItByItself) {
  // A clique of nine operators of nine strategies; any two differ in what they cost together.
  StrategyProblem problem;
  Random random(3);
  StrategyTable table;
  table.costs.resize(9);
  problem.strategy_tables = {table};
  for (std::size_t i = 0; i < 9; ++i) problem.nodes.push_back({StrategyTableId(0), {}});
  for (std::size_t a = 0; a < 9; ++a) {
    for (std::size_t b = a + 1; b < 9; ++b) {
      CostMatrix matrix{9, 9, {}};
      for (int i = 0; i < 81; ++i) matrix.costs.push_back(static_cast<std::int64_t>(random.below(1000)));
      problem.edges.push_back({NodeId(a), NodeId(b), problem.matrices.push_back(matrix)});
    }
  }
  SearchOptions options;
  options.start.emplace();
  options.start->strategy.resize(9, StrategyId(0));
  options.limits.work = 1'000'000'000;
  const PlanResult result = make_elimination_search()->search(problem, options);
  EXPECT_EQ(result.status, PlanStatus::kFeasible);
  EXPECT_EQ(result.choice, options.start);
  EXPECT_EQ(result.stopped_by, std::nullopt);  // no limit would have helped
  EXPECT_EQ(result.obstacle, "");
  options.start.reset();
  EXPECT_EQ(make_elimination_search()->search(problem, options).obstacle,
            "the tables of elimination would be too large");
}

}  // namespace
}  // namespace shardplan
