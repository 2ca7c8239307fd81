#include "planner/search/forced_choices.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

// The best choice with each strategy of a node, compared with trying all choices that have it.
TEST(ForcedChoicesTest, AreTheBestThatHaveTheStrategy) {
  constexpr std::uint64_t kSeed = 71;
  Random random(kSeed);
  std::size_t found = 0, none = 0;
  for (int round = 0; round < 25; ++round) {
    const StrategyProblem problem = random_problem(random, random_options(random));
    const NodeId node(random.below(problem.nodes.size()));
    const std::size_t count = problem.num_strategies(node);
    std::vector<std::optional<std::int64_t>> best(count);
    for_each_choice(problem, [&](const Choice& choice) {
      const Evaluation evaluation = evaluate(problem, choice);
      std::optional<std::int64_t>& least = best[choice.strategy[node].value()];
      const std::int64_t value = evaluation.value({});
      if (evaluation.feasible && (!least || value < *least)) least = value;
    });
    LevelOptions options;
    options.level = Level::kSpeed;
    // A start does not change the optimum.
    std::vector<std::optional<Choice>> starts(count);
    if (round % 2 == 0) {
      for_each_choice(problem, [&](const Choice& choice) {
        std::optional<Choice>& start = starts[choice.strategy[node].value()];
        if (!start || random.below(4) == 0) start = choice;
      });
    }
    const std::vector<std::optional<Choice>> choices = forced_choices(problem, node, starts, options);
    ASSERT_EQ(choices.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(choices[i].has_value(), best[i].has_value()) << describe(problem) << "seed " << kSeed;
      if (!choices[i]) {
        ++none;
        continue;
      }
      EXPECT_EQ(choices[i]->strategy[node].value(), i);
      const Evaluation evaluation = evaluate(problem, *choices[i]);
      EXPECT_TRUE(evaluation.feasible);
      EXPECT_EQ(evaluation.value({}), *best[i]) << describe(problem) << "seed " << kSeed;
      ++found;
    }
  }
  EXPECT_GT(found, 20u);
  EXPECT_GT(none, 5u);
}

TEST(ForcedChoicesTest, StopsWhenAsked) {
  Random random(3);
  const StrategyProblem problem = random_problem(random, {});
  std::stop_source stop;
  stop.request_stop();
  LevelOptions options;
  options.limits.stop = stop.get_token();
  const std::vector<std::optional<Choice>> starts(problem.num_strategies(NodeId(0)));
  for (const std::optional<Choice>& choice : forced_choices(problem, NodeId(0), starts, options)) EXPECT_FALSE(choice);
}

}  // namespace
}  // namespace shardplan
