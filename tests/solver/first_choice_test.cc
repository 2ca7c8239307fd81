#include "solver/first_choice.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

Choice strategies_of(std::initializer_list<std::size_t> strategies) {
  Choice choice;
  for (const std::size_t strategy : strategies) choice.strategy.push_back(StrategyId(strategy));
  return choice;
}

/// Two equal nodes: strategies cost 9, 5, 3 and 4 and hold 1, 1, 8 and 8 bytes.
StrategyProblem two_nodes(Bytes limit) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{9, 0}, {5, 0}, {3, 0}, {4, 0}}}};
  problem.usage_tables = {{{1, 1, 8, 8}}};
  for (int i = 0; i < 2; ++i) problem.nodes.push_back({StrategyTableId(0), {{UsageTableId(0), 0, 1}}});
  problem.memory_limits = {limit};
  return problem;
}

TEST(FirstChoiceTest, EachNodeTakesItsLeast) {
  const StrategyProblem problem = two_nodes(2);
  EXPECT_EQ(least_bytes_choice(problem, {}), strategies_of({1, 1}));  // of equal bytes the cheaper one
  EXPECT_EQ(least_cost_choice(problem, {}), strategies_of({2, 2}));
}

TEST(FirstChoiceTest, ForbiddenStrategiesComeLast) {
  StrategyProblem problem = two_nodes(20);
  problem.strategy_tables[StrategyTableId(0)].costs[1].communication = kForbidden;
  EXPECT_EQ(least_bytes_choice(problem, {}), strategies_of({0, 0}));
  problem.strategy_tables[StrategyTableId(0)].costs[0].communication = kForbidden;
  EXPECT_EQ(least_bytes_choice(problem, {}), strategies_of({2, 2}));
}

TEST(FirstChoiceTest, TheCheaperOneThatIsFeasibleIsTheAnswer) {
  const PlanResult loose = first_answer(two_nodes(16), {});
  EXPECT_EQ(loose.status, PlanStatus::kFeasible);
  EXPECT_EQ(loose.choice, strategies_of({2, 2}));
  EXPECT_EQ(loose.cost, 6);
  EXPECT_EQ(loose.found_by, "least costs");
  const PlanResult tight = first_answer(two_nodes(2), {});
  EXPECT_EQ(tight.choice, strategies_of({1, 1}));
  EXPECT_EQ(tight.cost, 10);
  EXPECT_EQ(tight.found_by, "least bytes");
  const PlanResult none = first_answer(two_nodes(1), {});
  EXPECT_EQ(none.status, PlanStatus::kNoPlanFound);
  EXPECT_FALSE(none.choice);
}

TEST(FirstChoiceTest, ACostBeyond64BitsIsNoAnswer) {
  StrategyProblem problem = two_nodes(20);
  for (Cost& cost : problem.strategy_tables[StrategyTableId(0)].costs) cost.computation = kForbidden - 1;
  for (int i = 0; i < 40; ++i) problem.nodes.push_back({StrategyTableId(0), {}});
  EXPECT_FALSE(first_answer(problem, {}).choice);
}

TEST(FirstChoiceTest, TheBetterAnswerCounts) {
  const PlanResult first = first_answer(two_nodes(2), {});
  PlanResult none;
  none.lower_bound = 8;
  none.stopped_by = Limit::kTime;
  const PlanResult taken = better_answer(first, none);
  EXPECT_EQ(taken.status, PlanStatus::kFeasible);
  EXPECT_EQ(taken.cost, 10);
  EXPECT_EQ(taken.lower_bound, 8);
  EXPECT_EQ(taken.stopped_by, Limit::kTime);
  none.lower_bound = 10;
  EXPECT_EQ(better_answer(first, none).status, PlanStatus::kOptimal);
  EXPECT_EQ(better_answer(first, none).stopped_by, std::nullopt);
  PlanResult equal;
  equal.status = PlanStatus::kFeasible;
  equal.choice = strategies_of({1, 0});
  equal.cost = 10;
  EXPECT_EQ(better_answer(first, equal).choice, strategies_of({1, 0}));
  equal.cost = 11;
  EXPECT_EQ(better_answer(first, equal).choice, strategies_of({1, 1}));
  PlanResult infeasible;
  infeasible.status = PlanStatus::kInfeasible;
  EXPECT_EQ(better_answer({}, infeasible).status, PlanStatus::kInfeasible);
}

}  // namespace
}  // namespace shardplan
