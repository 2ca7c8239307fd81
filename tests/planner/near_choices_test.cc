#include "planner/overlap/near_choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

constexpr NearLimits kAll{std::numeric_limits<std::int64_t>::max(), 0, 10'000, 1'000'000};

/// Whether no single node has a cheaper strategy while all others stay unchanged; forbidden ones are counted first.
bool is_cheapest(const StrategyProblem& problem, Choice choice, NodeId node) {
  const auto rank = [&] {
    const Evaluation value = evaluate(problem, choice);
    return std::pair(value.forbidden_count, value.value({}));
  };
  const auto now = rank();
  for (std::size_t s = 0; s < problem.num_strategies(node); ++s) {
    choice.strategy[node] = StrategyId(s);
    if (rank() < now) return false;
  }
  return true;
}

/// Whether everything that changed with one node, and all neighbours of the changed nodes, are as cheap as they can be.
bool is_settled_around(const StrategyProblem& problem, const Choice& center, const Choice& choice, NodeId given) {
  const auto is_changed = [&](NodeId node) { return choice.strategy[node] != center.strategy[node]; };
  if (!is_changed(given)) return false;
  for (const NodeId node : problem.nodes.ids()) {
    const bool is_near =
        is_changed(node) || std::any_of(problem.edges.begin(), problem.edges.end(), [&](const auto& edge) {
          return (edge.from == node && is_changed(edge.to)) || (edge.to == node && is_changed(edge.from));
        });
    if (node != given && is_near && !is_cheapest(problem, choice, node)) return false;
  }
  return true;
}

TEST(NearChoicesTest, NodesThatChangeTogetherDo) {
  StrategyProblem problem;
  const StrategyTableId table = problem.strategy_tables.push_back({{{10, 0}, {4, 0}, {6, 0}}});
  for (int i = 0; i < 2; ++i) problem.nodes.push_back({table, {}});
  const MatrixId equal = problem.matrices.push_back({3, 3, {0, 100, 100, 100, 0, 100, 100, 100, 0}});
  problem.edges.push_back({NodeId(0), NodeId(1), equal});
  const Choice center{{StrategyId(0), StrategyId(0)}};
  const std::vector<NearChoice> near = near_choices(problem, center, kAll);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_EQ(near[0].choice, (Choice{{StrategyId(1), StrategyId(1)}}));
  EXPECT_EQ(near[0].more, -12);
  EXPECT_EQ(near[1].choice, (Choice{{StrategyId(2), StrategyId(2)}}));
  EXPECT_EQ(near[1].more, -8);

  NearLimits limits = kAll;
  limits.most = 1;
  EXPECT_EQ(near_choices(problem, center, limits).size(), 1u);
  limits = kAll;
  limits.most_more = -9;
  EXPECT_EQ(near_choices(problem, center, limits).size(), 1u);
  limits = kAll;
  limits.least_moved = 9;
  EXPECT_EQ(near_choices(problem, center, limits).size(), 1u);
  limits = kAll;
  limits.work = 0;
  EXPECT_TRUE(near_choices(problem, center, limits).empty());
}

// Two nodes may change independently: the cheapest of each, not both of the one that gains more.
TEST(NearChoicesTest, OfWhatChangesTheSameMostTheCheapestAreGiven) {
  StrategyProblem problem;
  const StrategyTableId much = problem.strategy_tables.push_back({{{100, 0}, {40, 0}, {50, 0}}});
  const StrategyTableId little = problem.strategy_tables.push_back({{{10, 0}, {4, 0}, {6, 0}}});
  for (const StrategyTableId table : {much, little}) problem.nodes.push_back({table, {}});
  const Choice center{{StrategyId(0), StrategyId(0)}};
  NearLimits limits = kAll;
  EXPECT_EQ(near_choices(problem, center, limits).size(), 4u);
  limits.most_of_part = 1;
  const std::vector<NearChoice> near = near_choices(problem, center, limits);
  ASSERT_EQ(near.size(), 2u);
  EXPECT_EQ(near[0].choice, (Choice{{StrategyId(1), StrategyId(0)}}));
  EXPECT_EQ(near[1].choice, (Choice{{StrategyId(0), StrategyId(1)}}));
  // One that does not fit makes room for the next one.
  const UsageTableId usage = problem.usage_tables.push_back({{0, 10, 0}});
  problem.memory_limits = {5};
  problem.nodes[NodeId(0)].memory = {{usage, 0, 1}};
  EXPECT_EQ(near_choices(problem, center, limits)[0].choice, (Choice{{StrategyId(2), StrategyId(0)}}));
}

TEST(NearChoicesTest, FitAndAreSettledAndCostWhatIsSaidOnRandomProblems) {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    std::vector<Choice> feasible;
    for_each_choice(problem, [&](const Choice& choice) {
      if (evaluate(problem, choice).feasible) feasible.push_back(choice);
    });
    if (feasible.empty()) continue;
    const Choice center = feasible[random.below(feasible.size())];
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (const NearChoice& near : near_choices(problem, center, kAll)) {
      const Evaluation value = evaluate(problem, near.choice);
      EXPECT_TRUE(value.feasible);
      EXPECT_EQ(near.more, value.value({}) - evaluate(problem, center).value({})) << describe(problem);
      EXPECT_GE(near.more, last);
      last = near.more;
      bool is_settled = false;
      for (const NodeId node : problem.nodes.ids()) {
        is_settled = is_settled || is_settled_around(problem, center, near.choice, node);
      }
      EXPECT_TRUE(is_settled) << describe(problem);
      ++found;
    }
  }
  EXPECT_GT(found, 500u);
}

}  // namespace
}  // namespace shardplan
