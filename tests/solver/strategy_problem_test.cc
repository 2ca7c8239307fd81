#include "solver/strategy_problem.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace shardplan {
namespace {

/// Two nodes with two strategies each; node 2's strategy 1 costs 21, edge 1-2 at (0, 1) costs 1201.
StrategyProblem pair_problem() {
  StrategyProblem problem;
  problem.name = "pair";
  problem.strategy_tables = {{{{10, 0}, {11, 5}}}, {{{20, 0}, {21, 0}}}};
  problem.usage_tables = {{{100, 1}}, {{200, 2}}};
  problem.matrices = {{2, 2, {1200, 1201, kForbidden, 1211}}};
  problem.nodes = {{StrategyTableId(0), {{UsageTableId(0), 0, 2}}},
                   {StrategyTableId(1), {{UsageTableId(1), 1, 3}, {UsageTableId(0), 2, 3}}}};
  problem.edges = {{NodeId(0), NodeId(1), MatrixId(0)}};
  problem.memory_limits = {100, 300, 299};
  return problem;
}
Choice choice_of(std::size_t first, std::size_t second) {
  Choice choice;
  choice.strategy = {StrategyId(first), StrategyId(second)};
  return choice;
}

TEST(StrategyProblemTest, EvaluateAddsCostsAndMemory) {
  const StrategyProblem problem = pair_problem();
  const Evaluation result = evaluate(problem, choice_of(0, 0));
  EXPECT_EQ(result.cost, (Cost{10 + 20, 1200}));
  EXPECT_EQ(result.peak_bytes, 100 + 200);  // at time 1; at time 2 it is 200 + 100
  EXPECT_EQ(result.peak_time, 1u);
  EXPECT_EQ(result.worst_excess, 300 - 299);
  EXPECT_FALSE(result.feasible);
  EXPECT_EQ(result.value({2, 3}), 2 * 30 + 3 * 1200);
  EXPECT_TRUE(evaluate(problem, choice_of(0, 1)).feasible);
}

TEST(StrategyProblemTest, EvaluateCountsWhatIsForbidden) {
  const Evaluation result = evaluate(pair_problem(), choice_of(1, 0));
  EXPECT_EQ(result.forbidden_count, 1u);
  EXPECT_FALSE(result.feasible);
  EXPECT_EQ(result.cost, (Cost{31, 5}));
}

TEST(StrategyProblemTest, SumsSaturate) {
  StrategyProblem problem = pair_problem();
  problem.usage_tables[UsageTableId(0)].bytes = {std::numeric_limits<std::int64_t>::max(), 0};
  problem.memory_limits = {1, 1, 1};
  EXPECT_EQ(evaluate(problem, choice_of(0, 0)).peak_bytes, std::numeric_limits<std::int64_t>::max());
  Evaluation large;
  large.cost = {kForbidden - 1, kForbidden - 1};
  EXPECT_EQ(large.value({1000, 1000}), std::numeric_limits<std::int64_t>::max());
}

TEST(StrategyProblemTest, CheckNamesTheViolatedInvariant) {
  const auto message = [](auto damage) {
    StrategyProblem problem = pair_problem();
    damage(problem);
    try {
      check_problem(problem);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message([](auto&) {}), "accepted");
  EXPECT_NE(message([](auto& p) { p.strategy_tables[StrategyTableId(0)].costs.clear(); }).find("is empty"),
            std::string::npos);
  EXPECT_NE(message([](auto& p) { p.edges[EdgeId(0)].to = NodeId(9); }).find("names node 9"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.nodes[NodeId(1)].memory[0].end = 4; }).find("until 4"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.matrices[MatrixId(0)].costs[2] = -1; }).find("negative"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.matrices[MatrixId(0)].rows = 3; }).find("expected 3 x 2"), std::string::npos);
  EXPECT_NE(message([](auto& p) { p.usage_tables[UsageTableId(0)].bytes.push_back(1); }).find("usages"),
            std::string::npos);
}

}  // namespace
}  // namespace shardplan
