#include "planner/overlap/crossed_choices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

/// Two pairs of nodes and a single one; nodes of a pair must agree.
StrategyProblem pairs() {
  StrategyProblem problem;
  const StrategyTableId table = problem.strategy_tables.push_back({{{10, 0}, {4, 0}}});
  for (int i = 0; i < 5; ++i) problem.nodes.push_back({table, {}});
  const MatrixId equal = problem.matrices.push_back({2, 2, {0, kForbidden, kForbidden, 0}});
  problem.edges.push_back({NodeId(0), NodeId(1), equal});
  problem.edges.push_back({NodeId(2), NodeId(3), equal});
  return problem;
}

Choice choice(const std::vector<std::size_t>& strategies) {
  Choice result;
  for (const std::size_t strategy : strategies) result.strategy.push_back(StrategyId(strategy));
  return result;
}

TEST(CrossedChoicesTest, PartsAreTakenAndLeftOutOneByOne) {
  const Choice others[] = {choice({1, 1, 1, 1, 1})};
  const std::vector<Choice> expected = {choice({1, 1, 0, 0, 0}), choice({0, 0, 1, 1, 1}), choice({0, 0, 1, 1, 0}),
                                        choice({1, 1, 0, 0, 1}), choice({0, 0, 0, 0, 1}), choice({1, 1, 1, 1, 0})};
  EXPECT_EQ(crossed_choices(pairs(), choice({0, 0, 0, 0, 0}), others, 10), expected);
  EXPECT_EQ(crossed_choices(pairs(), choice({0, 0, 0, 0, 0}), others, 1),
            std::vector<Choice>(expected.begin(), expected.begin() + 2));
}

TEST(CrossedChoicesTest, AChoiceWithOnePartHasNothingNew) {
  const Choice others[] = {choice({1, 1, 0, 0, 0}), choice({0, 0, 0, 0, 0})};
  EXPECT_TRUE(crossed_choices(pairs(), choice({0, 0, 0, 0, 0}), others, 10).empty());
}

TEST(CrossedChoicesTest, NoneIsThereTwice) {
  const Choice others[] = {choice({1, 1, 1, 1, 0}), choice({1, 1, 0, 0, 1})};
  const std::vector<Choice> expected = {choice({0, 0, 1, 1, 0}), choice({0, 0, 0, 0, 1})};
  std::vector<Choice> found = crossed_choices(pairs(), choice({0, 0, 0, 0, 0}), others, 10);
  std::erase(found, choice({1, 1, 0, 0, 0}));  // of both
  EXPECT_EQ(found, expected);
}

TEST(CrossedChoicesTest, WhatDoesNotFitIsLeftOut) {
  StrategyProblem problem = pairs();
  const UsageTableId usage = problem.usage_tables.push_back({{0, 10}});
  problem.memory_limits = {20};
  for (const NodeId node : {NodeId(0), NodeId(2)}) problem.nodes[node].memory.push_back({usage, 0, 1});
  const Choice others[] = {choice({1, 1, 1, 1, 1})};
  EXPECT_EQ(crossed_choices(problem, choice({0, 0, 0, 0, 0}), others, 10).size(), 6u);
  problem.memory_limits = {15};
  for (const Choice& one : crossed_choices(problem, choice({0, 0, 0, 0, 0}), others, 10)) {
    EXPECT_TRUE(evaluate(problem, one).feasible);
  }
  EXPECT_EQ(crossed_choices(problem, choice({0, 0, 0, 0, 0}), others, 10).size(), 5u);
}

/// In random problems: every part has the same cost as in the other choice.
TEST(CrossedChoicesTest, PartsOfTheDifferenceAddUp) {
  std::size_t num_crossed = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem =
        random_problem(random, {.max_nodes = 12, .forbidden_percent = 5, .edge_percent = 15, .limit_percent = 200});
    const auto random_choice = [&] {
      Choice result;
      for (const NodeId node : problem.nodes.ids()) {
        result.strategy.push_back(StrategyId(random.below(problem.num_strategies(node))));
      }
      return result;
    };
    const Choice center = random_choice(), other = random_choice();
    const std::int64_t of_center = evaluate(problem, center).value({}), of_other = evaluate(problem, other).value({});
    if (evaluate(problem, center).forbidden_count + evaluate(problem, other).forbidden_count > 0) continue;
    const std::vector<Choice> crossed = crossed_choices(problem, center, std::span(&other, 1), 100);
    num_crossed += crossed.size();
    for (const Choice& one : crossed) {
      // What this choice takes from the other one and what that one keeps are all of it together.
      Choice rest = other;
      for (const NodeId node : problem.nodes.ids()) {
        if (one.strategy[node] != center.strategy[node]) rest.strategy[node] = center.strategy[node];
      }
      EXPECT_EQ(evaluate(problem, one).value({}) + evaluate(problem, rest).value({}), of_center + of_other);
      EXPECT_EQ(evaluate(problem, one).forbidden_count, 0u);
    }
  }
  EXPECT_GT(num_crossed, 100u);
}

}  // namespace
}  // namespace shardplan
