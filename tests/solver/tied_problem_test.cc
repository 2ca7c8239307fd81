#include "solver/tied_problem.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

void expect_equal_costs(const StrategyProblem& problem, const TiedProblem& tied, const Choice& choice) {
  const Evaluation expected = evaluate(problem, tied.expanded(choice));
  const Evaluation found = evaluate(tied.problem, choice);
  EXPECT_EQ(found.feasible, expected.feasible);
  EXPECT_EQ(found.forbidden_count == 0, expected.forbidden_count == 0);
  if (expected.forbidden_count == 0) {
    EXPECT_EQ(found.cost, expected.cost);
  }
  EXPECT_EQ(found.peak_bytes, expected.peak_bytes);
  EXPECT_EQ(found.worst_excess, expected.worst_excess);
}

Bytes bytes_at(const StrategyProblem& problem, const Choice& choice, std::size_t time) {
  Bytes bytes = 0;
  for (const NodeId node : problem.nodes.ids()) {
    for (const MemoryUse& use : problem.nodes[node].memory) {
      if (use.begin > time || time >= use.end) continue;
      bytes += problem.usage_tables[use.usage].bytes[choice.strategy[node].value()];
    }
  }
  return bytes;
}

TEST(TiedProblemTest, CostsAndMemoryAreThoseOfAllCopies) {
  // Two tied nodes, a third one on its own; 0-1 is paid on its diagonal, 0-2 and 1-2 together.
  StrategyProblem problem;
  problem.strategy_tables = {{{{1, 10}, {2, 20}}}, {{{5, 0}}}};
  problem.usage_tables = {{{100, 60}}};
  problem.matrices = {{2, 2, {3, 1000, 1000, 4}}, {2, 1, {7, 8}}};
  problem.nodes.push_back({StrategyTableId(0), {{UsageTableId(0), 0, 2}}});
  problem.nodes.push_back({StrategyTableId(0), {{UsageTableId(0), 1, 3}}});
  problem.nodes.push_back({StrategyTableId(1), {}});
  problem.edges = {
      {NodeId(0), NodeId(1), MatrixId(0)}, {NodeId(0), NodeId(2), MatrixId(1)}, {NodeId(1), NodeId(2), MatrixId(1)}};
  problem.memory_limits = {150, 150, 150};
  const TiedProblem tied = tied_problem(problem, {NodeId(0), NodeId(0), NodeId(1)});
  ASSERT_EQ(tied.problem.nodes.size(), 2u);
  ASSERT_EQ(tied.problem.edges.size(), 1u);
  const Choice second{{StrategyId(1), StrategyId(0)}};
  const Evaluation evaluation = evaluate(tied.problem, second);
  EXPECT_EQ(evaluation.cost, (Cost{2 * 2 + 5, 2 * 20 + 4 + 2 * 8}));
  EXPECT_EQ(evaluation.peak_bytes, 120);
  EXPECT_TRUE(evaluation.feasible);
  EXPECT_FALSE(evaluate(tied.problem, {{StrategyId(0), StrategyId(0)}}).feasible);  // 200 bytes at time 1
  EXPECT_EQ(tied.expanded(second), (Choice{{StrategyId(1), StrategyId(1), StrategyId(0)}}));
}

TEST(TiedProblemTest, EveryChoiceOfARandomProblemCostsWhatItsExpansionCosts) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 900);
    const StrategyProblem problem = random_problem(random, random_options(random));
    // Nodes with equally many strategies are put into random sets.
    IdVector<NodeId, NodeId> ties;
    std::vector<std::size_t> size_of_set;
    for (const NodeId node : problem.nodes.ids()) {
      std::size_t set = random.below(size_of_set.size() + 1);
      if (set < size_of_set.size() && size_of_set[set] != problem.num_strategies(node)) set = size_of_set.size();
      if (set == size_of_set.size()) size_of_set.push_back(problem.num_strategies(node));
      ties.push_back(NodeId(set));
    }
    const TiedProblem tied = tied_problem(problem, ties);
    check_problem(tied.problem);
    std::optional<std::int64_t> least;
    for_each_choice(tied.problem, [&](const Choice& choice) {
      expect_equal_costs(problem, tied, choice);
      EXPECT_EQ(tied.tied(tied.expanded(choice)), choice);
      const Evaluation evaluation = evaluate(problem, tied.expanded(choice));
      if (evaluation.feasible && (!least || evaluation.value({}) < *least)) least = evaluation.value({});
    });
    EXPECT_EQ(brute_force(tied.problem), least);
    if (HasFailure()) FAIL() << describe(problem) << "tied:\n" << describe(tied.problem);
  }
}

TEST(TiedProblemTest, RepeatedLayersCostWhatTheyCost) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t copies = 1 + random.below(9);
    const int limit = static_cast<int>(random.below(120));
    const RepeatedProblem repeated =
        random_repeated_problem(random, copies, 1 + random.below(3), 1 + random.below(4), limit);
    check_problem(repeated.problem);
    const TiedProblem tied = tied_problem(repeated.problem, repeated.ties);
    check_problem(tied.problem);
    for_each_choice(tied.problem, [&](const Choice& choice) { expect_equal_costs(repeated.problem, tied, choice); });
    if (HasFailure()) FAIL() << describe(repeated.problem) << "tied:\n" << describe(tied.problem);
  }
}

// An omitted time holds no more than one of the times around it.
TEST(TiedProblemTest, TimesThatAreLeftOutAreBetweenOthers) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 40);
    const RepeatedProblem repeated = random_repeated_problem(random, 12, 3, 4, 50);
    const TiedProblem tied = tied_problem(repeated.problem, repeated.ties);
    EXPECT_LT(tied.times.size(), repeated.problem.memory_limits.size());
    const Choice choice = random_choice(tied.problem, random);
    const Choice expanded = tied.expanded(choice);
    ASSERT_EQ(tied.between.size(), repeated.problem.memory_limits.size());
    for (std::size_t time = 0; time < tied.between.size(); ++time) {
      const auto [before, after] = tied.between[time];
      EXPECT_LE(bytes_at(repeated.problem, expanded, time),
                std::max(bytes_at(tied.problem, choice, before), bytes_at(tied.problem, choice, after)));
    }
    for (std::size_t at = 0; at < tied.times.size(); ++at) {
      EXPECT_EQ(bytes_at(tied.problem, choice, at), bytes_at(repeated.problem, expanded, tied.times[at]));
    }
  }
}

TEST(TiedProblemTest, TheSizeDoesNotDependOnTheNumberOfCopies) {
  const auto tied_of = [](std::size_t copies) {
    Random random(5);
    const RepeatedProblem repeated = random_repeated_problem(random, copies, 8, 6, 50);
    return tied_problem(repeated.problem, repeated.ties);
  };
  const TiedProblem few = tied_of(8), many = tied_of(200);
  EXPECT_EQ(few.problem.nodes.size(), many.problem.nodes.size());
  EXPECT_EQ(few.problem.edges.size(), many.problem.edges.size());
  EXPECT_EQ(few.times.size(), many.times.size());
  const auto num_uses = [](const StrategyProblem& problem) {
    std::size_t count = 0;
    for (const ProblemNode& node : problem.nodes) count += node.memory.size();
    return count;
  };
  EXPECT_EQ(num_uses(few.problem), num_uses(many.problem));
  EXPECT_LT(few.times.size(), 100u);
}

}  // namespace
}  // namespace shardplan
