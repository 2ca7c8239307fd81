#include "solver/heuristics/tree_neighbourhood.h"

#include <gtest/gtest.h>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

TEST(TreeNeighbourhoodTest, SolvesAWholeTreeInOneMove) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.max_nodes = 8, .times = 0, .is_tree = true});
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    MoveState state(core, random_choice(sketch, random));
    TreeNeighbourhood trees(core, {});
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, UINT64_MAX);
    trees.move(state, random, sketch.costs.size(), 0, 0, meter);
    EXPECT_EQ(sketch.cost(state.choice()), sketch.cost(*best)) << describe(sketch);
    EXPECT_GT(meter.used(), 0u);
  }
}

TEST(TreeNeighbourhoodTest, KeepsLimitsAndTheAllowance) {
  int num_better = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.max_nodes = 7, .edge_percent = 60, .limit_percent = 40});
    const CoreProblem core = core_of(sketch);
    MoveState state(core, fewest_bytes_choice(core));
    if (!state.is_feasible()) continue;
    const std::vector<double> prices(core.limits.size(), 0.5);
    TreeNeighbourhood trees(core, prices);
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, UINT64_MAX);
    for (int move = 0; move < 20; ++move) {
      const double before = sketch.cost(state.choice());
      const auto allowance = static_cast<double>(random.below(4));
      trees.move(state, random, 1 + random.below(6), random.unit(), allowance, meter);
      const double after = sketch.cost(state.choice());
      ASSERT_EQ(sketch.excess(state.choice()), 0) << describe(sketch);
      ASSERT_LE(after, before + allowance) << describe(sketch);
      ASSERT_EQ(state.cost(), after);
      num_better += after < before;
    }
  }
  EXPECT_GT(num_better, 40);
}

}  // namespace
}  // namespace shardplan
