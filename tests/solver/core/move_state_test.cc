#include "solver/core/move_state.h"

#include <gtest/gtest.h>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

void expect_consistent(const CoreSketch& sketch, const MoveState& state) {
  ASSERT_EQ(state.cost(), sketch.cost(state.choice())) << describe(sketch);
  ASSERT_EQ(state.is_feasible(), sketch.is_feasible(state.choice())) << describe(sketch);
  CoreChoice choice = state.choice();
  for (std::size_t node = 0; node < choice.size(); ++node) {
    const std::uint32_t own = choice[node];
    for (std::uint32_t value = 0; value < sketch.costs[node].size(); ++value) {
      choice[node] = value;
      // What a move costs is the difference of conditional costs.
      ASSERT_EQ(state.conditional(node)[value] - state.conditional(node)[own],
                sketch.cost(choice) - sketch.cost(state.choice()));
    }
    choice[node] = own;
  }
}

TEST(MoveStateTest, KeepsCostsThroughMoves) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random);
    const CoreProblem core = core_of(sketch);
    MoveState state(core, random_choice(sketch, random));
    expect_consistent(sketch, state);
    for (int round = 0; round < 10; ++round) {
      if (round % 4 == 3) {
        state.set(random_choice(sketch, random));
      } else {
        const std::size_t node = random.below(core.num_nodes());
        const auto value = static_cast<std::uint32_t>(random.below(core.num_values(node)));
        CoreChoice moved = state.choice();
        moved[node] = value;
        const bool fits = sketch.excess(state.choice()) == 0 ? sketch.excess(moved) == 0 : state.fits(node, value);
        EXPECT_EQ(state.fits(node, value), fits) << describe(sketch);
        state.move(node, value);
      }
      expect_consistent(sketch, state);
    }
  }
}

TEST(MoveStateTest, DescendsToALocalMinimumWithoutBreakingLimits) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random);
    const CoreProblem core = core_of(sketch);
    MoveState state(core, fewest_bytes_choice(core));
    if (sketch.excess(state.choice()) > 0) continue;
    const double before = state.cost();
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, kInfiniteWork);
    state.descend(meter);
    EXPECT_LE(state.cost(), before);
    EXPECT_EQ(sketch.excess(state.choice()), 0);
    CoreChoice choice = state.choice();
    for (std::size_t node = 0; node < choice.size(); ++node) {
      for (std::uint32_t value = 0; value < core.num_values(node); ++value) {
        choice[node] = value;
        if (sketch.excess(choice) == 0) {
          EXPECT_GE(sketch.cost(choice), state.cost()) << describe(sketch);
        }
      }
      choice[node] = state.choice()[node];
    }
  }
}

TEST(MoveStateTest, RepairsUntilLimitsHoldOrSaysThatItCannot) {
  int num_repaired = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.limit_percent = 30});
    const CoreProblem core = core_of(sketch);
    MoveState state(core, random_choice(sketch, random));
    const bool fits_before = sketch.excess(state.choice()) == 0;
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, kInfiniteWork);
    const bool is_repaired = state.repair(meter);
    EXPECT_EQ(sketch.excess(state.choice()) == 0, is_repaired) << describe(sketch);
    EXPECT_TRUE(is_repaired || !fits_before);
    num_repaired += is_repaired && !fits_before;
    expect_consistent(sketch, state);
  }
  EXPECT_GT(num_repaired, 50);
}

TEST(MoveStateTest, TheFewestBytesAreEachNodesOwn) {
  CoreSketch sketch;
  sketch.costs = {{5, 4, 3}, {1, 2}};
  sketch.segments = {{0, 0, 2, {0, 0, 1}}, {1, 1, 2, {3, 0}}};
  sketch.limits = {9, 9};
  EXPECT_EQ(fewest_bytes_choice(core_of(sketch)), (CoreChoice{1, 1}));  // of 0 and 1 of node 0 the cheaper
}

}  // namespace
}  // namespace shardplan
