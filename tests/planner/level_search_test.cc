#include "planner/search/level_search.h"

#include <gtest/gtest.h>

#include "solver/searches/search_list.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

// Level 0 is the least communication, then the least computation: with costs of a few tens, the weighted sum in which
// communication counts 1000 times says the same and is tried out.
TEST(LevelSearchTest, RatioHasTheLeastCommunicationThenTheLeastComputation) {
  Random random(5);
  for (int i = 0; i < 60; ++i) {
    const StrategyProblem problem = random_problem(random, random_options(random));
    const LevelResult result = search_level(problem, *make_search("auto"), {});
    const auto best = brute_force(problem, {1, 1000});
    ASSERT_EQ(result.choice.has_value(), best.has_value()) << describe(problem);
    if (!best) continue;
    const Evaluation evaluation = evaluate(problem, *result.choice);
    EXPECT_TRUE(evaluation.feasible);
    EXPECT_EQ(evaluation.value({1, 1000}), *best) << describe(problem);
    EXPECT_EQ(result.status, PlanStatus::kOptimal);
    EXPECT_EQ(result.bound, (LevelValue{Level::kRatio, evaluation.cost.communication})) << describe(problem);
  }
}

// Where memory hardly binds, and where it cannot bind, the answer is that of the search with all limits.
TEST(LevelSearchTest, FastestIsTheLeastSumUnderTheLimits) {
  Random random(6);
  for (int i = 0; i < 60; ++i) {
    RandomProblemOptions options = random_options(random);
    options.limit_percent = 40 + 20 * (i % 5);
    const StrategyProblem problem = random_problem(random, options);
    LevelOptions level;
    level.level = Level::kSpeed;
    const LevelResult result = search_level(problem, *make_search("auto"), level);
    const auto best = brute_force(problem);
    ASSERT_EQ(result.choice.has_value(), best.has_value()) << describe(problem);
    if (!best) continue;
    EXPECT_EQ(evaluate(problem, *result.choice).value({}), *best) << describe(problem);
    EXPECT_EQ(result.bound, (LevelValue{Level::kSpeed, *best})) << describe(problem);
  }
}

/// Knows a bound and no choice.
class FruitlessSearch : public Search {
 public:
  PlanResult search(const StrategyProblem&, const SearchOptions&) const override {
    PlanResult result;
    result.lower_bound = (std::int64_t{1} << 16) * 40 + 30;
    return result;
  }
};

// The weighted sum's bound says something of communication whether or not a plan was found: 40 of it, if all 30 of
// computation count.
TEST(LevelSearchTest, RatioWithoutAPlanHasABoundOnCommunication) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{10, 1}, {30, 0}}}};
  problem.nodes.push_back({StrategyTableId(0), {}});
  const LevelResult result = search_level(problem, FruitlessSearch(), {});
  EXPECT_FALSE(result.choice);
  EXPECT_EQ(result.bound, (LevelValue{Level::kRatio, 40}));
}

}  // namespace
}  // namespace shardplan
