#include "solver/part_problem.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

// Every choice of the part, in random problems and for random parts, against the whole problem.
TEST(PartProblemTest, CostsAndFeasibilityAreThoseOfTheWholeProblem) {
  int feasible = 0, forbidden = 0, too_large = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem whole = random_problem(random, random_options(random));
    Choice known = random_choice(whole, random);
    for (int i = 0; i < 200 && !evaluate(whole, known).feasible; ++i) known = random_choice(whole, random);
    std::vector<NodeId> nodes;
    for (const NodeId node : whole.nodes.ids()) {
      if (random.below(2) == 0) nodes.push_back(node);
    }
    const std::optional<PartProblem> part = part_problem(whole, known, nodes);
    ASSERT_EQ(part.has_value(), evaluate(whole, known).feasible);
    if (!part) continue;
    check_problem(part->problem);
    EXPECT_EQ(part->expanded(part->start()), known);
    const auto beside = evaluate(whole, known).value({}) - evaluate(part->problem, part->start()).value({});
    for_each_choice(part->problem, [&](const Choice& choice) {
      const Evaluation expected = evaluate(whole, part->expanded(choice)), found = evaluate(part->problem, choice);
      ASSERT_EQ(found.feasible, expected.feasible) << describe(whole);
      ASSERT_EQ(found.forbidden_count > 0, expected.forbidden_count > 0);
      if (expected.forbidden_count > 0) {
        ++forbidden;
        return;
      }
      EXPECT_EQ(found.value({}) + beside, expected.value({}));
      ++(expected.feasible ? feasible : too_large);
    });
  }
  EXPECT_GT(feasible, 500);
  EXPECT_GT(forbidden, 500);
  EXPECT_GT(too_large, 100);
}

TEST(PartProblemTest, LimitsThatNeverBindStayUnlimited) {
  StrategyProblem whole;
  whole.strategy_tables = {{{{1, 0}, {2, 0}}}};
  whole.usage_tables = {{{10, 20}}};
  whole.nodes.push_back({StrategyTableId(0), {{UsageTableId(0), 0, 1}}});
  whole.nodes.push_back({StrategyTableId(0), {{UsageTableId(0), 0, 2}}});
  whole.memory_limits = {kUnlimitedBytes, 35};
  const NodeId part[] = {NodeId(0)};
  const Choice known{{StrategyId(0), StrategyId(1)}};
  EXPECT_EQ(part_problem(whole, known, part)->problem.memory_limits, (std::vector<Bytes>{kUnlimitedBytes, 15}));
}

}  // namespace
}  // namespace shardplan
