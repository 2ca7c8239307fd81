#include "planner/overlap/blended_problem.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace shardplan {
namespace {

/// Costs are multiples of 100 picoseconds, so that hundredths of them are exact; some are forbidden.
std::int64_t exact(Random& random) { return 100 * static_cast<std::int64_t>(random.below(50)); }
std::int64_t cost_of(Random& random) { return random.below(8) == 0 ? kForbidden : exact(random); }

constexpr std::size_t kNodes = 4, kStrategies = 3;

/// Two nodes share a table, all have edges to the next one.
StrategyProblem random_problem(Random& random) {
  StrategyProblem problem;
  problem.memory_limits = {1000};
  for (std::size_t table = 0; table + 1 < kNodes; ++table) {
    StrategyTable costs;
    for (std::size_t s = 0; s < kStrategies; ++s) {
      costs.costs.push_back({exact(random), cost_of(random)});
    }
    problem.strategy_tables.push_back(std::move(costs));
  }
  const UsageTableId usage = problem.usage_tables.push_back({{1, 2, 300}});
  for (std::size_t node = 0; node < kNodes; ++node) {
    problem.nodes.push_back({StrategyTableId(node % (kNodes - 1)), {{usage, 0, 1}}});
  }
  return problem;
}

void add_edge(StrategyProblem& problem, std::size_t from, std::size_t to, Random& random) {
  CostMatrix matrix{kStrategies, kStrategies, {}};
  for (std::size_t i = 0; i < kStrategies * kStrategies; ++i) matrix.costs.push_back(cost_of(random));
  problem.edges.push_back({NodeId(from), NodeId(to), problem.matrices.push_back(std::move(matrix))});
}

// Every choice, by `evaluate` of both problems.
TEST(BlendedProblemTest, EveryChoiceCostsItsSharesOfBoth) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    StrategyProblem a = random_problem(random), b = random_problem(random);
    for (std::size_t node = 0; node + 1 < kNodes; ++node) {
      add_edge(a, node, node + 1, random);
      if (node > 0) add_edge(b, node, node + 1, random);  // the other leaves an edge out
    }
    for (const std::int64_t percent : {50, 75}) {
      const StrategyProblem both = blended(a, b, percent);
      check_problem(both);
      for (std::size_t number = 0; number < 81; ++number) {
        Choice choice;
        for (std::size_t node = 0, rest = number; node < kNodes; ++node, rest /= kStrategies) {
          choice.strategy.push_back(StrategyId(rest % kStrategies));
        }
        const Evaluation of_a = evaluate(a, choice), of_b = evaluate(b, choice), of_both = evaluate(both, choice);
        EXPECT_EQ(of_both.forbidden_count > 0, of_a.forbidden_count + of_b.forbidden_count > 0);
        EXPECT_EQ(of_both.peak_bytes, of_a.peak_bytes);
        if (of_both.forbidden_count > 0) continue;
        EXPECT_EQ(of_both.value({}), ((100 - percent) * of_a.value({}) + percent * of_b.value({})) / 100);
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
