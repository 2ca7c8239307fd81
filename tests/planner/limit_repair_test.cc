#include "planner/search/limit_repair.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

/// Two operators; the first holds 100 or 60 bytes while it runs and until the second has run, the second 40 or 10.
StrategyProblem two_operators() {
  StrategyProblem problem;
  problem.strategy_tables = {{{{1, 0}, {2, 0}}}};
  problem.usage_tables = {{{100, 60}}, {{40, 10}}};
  problem.nodes.push_back({StrategyTableId(0), {{UsageTableId(0), 0, 2}}});
  problem.nodes.push_back({StrategyTableId(0), {{UsageTableId(1), 1, 2}}});
  problem.memory_limits = {200, 150, 200};  // two operators and the end of the step
  return problem;
}

/// The first operator; a redistribution before the second, which holds `transient` bytes; the second.
ParallelProgram program() {
  ParallelProgram result;
  result.instructions.resize(3);
  result.instructions[0].op = OperatorId(0);
  result.instructions[1].kind = InstructionKind::kCollective;
  result.instructions[2].op = OperatorId(1);
  return result;
}

MemoryProfile profile(Bytes transient) {
  MemoryProfile memory;
  memory.bytes = {100, transient, 140};
  return memory;
}

TEST(LimitRepairTest, LimitsFallWhereTheProgramHoldsTooMuch) {
  const StrategyProblem problem = two_operators();
  const Choice choice{{StrategyId(0), StrategyId(0)}};
  // At time 1 the search sees 140; the redistribution holds 180, 30 more than 150: 140 - 30.
  EXPECT_EQ(lowered_limits(problem, {}, choice, program(), profile(180), 150), (std::vector<Bytes>{200, 110, 200}));
  // A choice that holds 140 is then excluded, one that holds less may stay.
  StrategyProblem lowered = problem;
  lowered.memory_limits = lowered_limits(problem, {}, choice, program(), profile(180), 150);
  EXPECT_FALSE(evaluate(lowered, choice).feasible);
  EXPECT_TRUE(evaluate(lowered, {{StrategyId(1), StrategyId(1)}}).feasible);
}

TEST(LimitRepairTest, NothingChangesWhereAllFits) {
  const StrategyProblem problem = two_operators();
  const Choice choice{{StrategyId(0), StrategyId(0)}};
  EXPECT_EQ(lowered_limits(problem, {}, choice, program(), profile(150), 150), problem.memory_limits);
}

TEST(LimitRepairTest, NoLimitIsRaisedAndNoneFallsBelowNothing) {
  StrategyProblem problem = two_operators();
  const Choice choice{{StrategyId(0), StrategyId(0)}};
  problem.memory_limits[1] = 20;
  EXPECT_EQ(lowered_limits(problem, {}, choice, program(), profile(160), 150), (std::vector<Bytes>{200, 10, 200}));
  EXPECT_EQ(lowered_limits(problem, {}, choice, program(), profile(500), 150), (std::vector<Bytes>{200, 0, 200}));
}

TEST(LimitRepairTest, WhatIsHeldBetweenTwoTimesLowersBoth) {
  const StrategyProblem problem = two_operators();
  const Choice choice{{StrategyId(0), StrategyId(0)}};
  // The step's second operator is between the problem's first two times, at which 100 and 140 are held.
  const ProblemTimes times = {{0, 0}, {0, 1}, {2, 2}};
  EXPECT_EQ(lowered_limits(problem, times, choice, program(), profile(180), 150), (std::vector<Bytes>{70, 110, 200}));
}

}  // namespace
}  // namespace shardplan
