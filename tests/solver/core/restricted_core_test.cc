#include "solver/core/restricted_core.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

TEST(RestrictedCoreTest, ItsChoicesCostAndHoldWhatTheyDoInTheWholeCore) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random);
    const CoreProblem core = core_of(sketch);
    std::vector<std::uint8_t> alive(core.costs.size());
    for (std::uint8_t& item : alive) item = random.below(3) > 0;
    const CoreChoice kept = random_choice(sketch, random);
    for (std::size_t node = 0; node < core.num_nodes(); ++node) alive[core.first_value[node] + kept[node]] = 1;
    const auto restricted = restrict_core(core, alive, 1'000'000);
    ASSERT_TRUE(restricted);
    EXPECT_EQ(static_cast<std::ptrdiff_t>(restricted->core.costs.size()), std::count(alive.begin(), alive.end(), 1));
    EXPECT_EQ(restricted->expand(restricted->nearest(kept)), kept);
    for (int round = 0; round < 10; ++round) {
      CoreChoice choice;
      for (std::size_t node = 0; node < core.num_nodes(); ++node) {
        choice.push_back(static_cast<std::uint32_t>(random.below(restricted->core.num_values(node))));
      }
      const CoreChoice whole = restricted->expand(choice);
      for (std::size_t node = 0; node < core.num_nodes(); ++node) {
        EXPECT_TRUE(alive[core.first_value[node] + whole[node]]);
      }
      const CoreEvaluation evaluation = evaluate(restricted->core, choice);
      EXPECT_EQ(evaluation.cost, sketch.cost(whole)) << describe(sketch);
      EXPECT_EQ(evaluation.excess, sketch.excess(whole)) << describe(sketch);
      EXPECT_EQ(restricted->nearest(whole), choice);
    }
    EXPECT_EQ(restrict_core(core, alive, 0).has_value(), core.neighbours.empty());
  }
}

TEST(RestrictedCoreTest, ARestrictionOfARestrictionIsOneOfTheWhole) {
  CoreSketch sketch;
  sketch.costs = {{1, 7, 4, 5}, {3, 2, 6}};
  const CoreProblem core = core_of(sketch);
  const auto larger = restrict_core(core, {0, 1, 1, 1, 1, 0, 1}, 10);
  ASSERT_TRUE(larger);
  auto smaller = restrict_core(larger->core, {0, 1, 1, 0, 1}, 10);
  ASSERT_TRUE(smaller);
  smaller->count_values_as(*larger);
  EXPECT_EQ(smaller->values, (std::vector<std::uint32_t>{2, 3, 2}));
  EXPECT_EQ(smaller->expand({1, 0}), (CoreChoice{3, 2}));
}

TEST(RestrictedCoreTest, AGoneValueIsReplacedByTheCheapestThatIsLeft) {
  CoreSketch sketch;
  sketch.costs = {{1, 7, 4, 5}};
  const CoreProblem core = core_of(sketch);
  const auto restricted = restrict_core(core, {0, 1, 1, 1}, 10);
  ASSERT_TRUE(restricted);
  EXPECT_EQ(restricted->nearest({0}), CoreChoice{1});  // value 2 of the whole core
  EXPECT_EQ(restricted->nearest({3}), CoreChoice{2});
}

}  // namespace
}  // namespace shardplan
