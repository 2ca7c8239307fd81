#include "solver/heuristics/dive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

TEST(DiveTest, EndsAtAFeasibleChoiceOftenTheBest) {
  int num_feasible = 0, num_found = 0, num_best = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.limit_percent = 40});
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> best = brute_force(sketch);
    DualBound dual(core);
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, 100'000'000);
    const auto found = dive(core, dual, best ? sketch.cost(*best) + 1 : 100, 0.2, 4, {}, meter);
    ASSERT_TRUE(best || !found) << describe(sketch);
    num_feasible += best.has_value();
    if (!found) continue;
    ++num_found;
    EXPECT_TRUE(sketch.is_feasible(*found)) << describe(sketch);
    num_best += sketch.cost(*found) == sketch.cost(*best);
  }
  EXPECT_GT(num_found, num_feasible * 8 / 10);
  EXPECT_GT(num_best, num_feasible * 6 / 10);
}

// On cores whose passes take long it goes on in what is left: fewer values, shorter passes.
TEST(DiveTest, GoesOnInWhatIsLeft) {
  Random random(7);
  CoreSketch sketch;
  do {
    sketch = random_core(random, {.max_nodes = 140,
                                  .max_values = 40,
                                  .edge_percent = 20,
                                  .forbidden_percent = 0,
                                  .limit_percent = 60,
                                  .largest_cost = 1000});
  } while (sketch.costs.size() < 100);
  const CoreProblem core = core_of(sketch);
  DualBound dual(core);
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, UINT64_MAX);
  constexpr double kRate = 0.1;
  constexpr int kPasses = 4;
  const auto found = dive(core, dual, 1e7, kRate, kPasses, {}, meter);
  ASSERT_TRUE(found);
  EXPECT_TRUE(sketch.is_feasible(*found));
  // A tenth at a time until one of some thousand is left, if all passes were on the whole core.
  const double passes = kPasses * std::log(static_cast<double>(core.costs.size())) / -std::log(1 - kRate);
  EXPECT_LT(static_cast<double>(meter.used()), 0.5 * passes * static_cast<double>(dual.work_per_pass()));
}

TEST(DiveTest, EndsWithoutAChoiceWhenItsWorkIsSpent) {
  Random random(2);
  const CoreSketch sketch = random_core(random, {.max_nodes = 8, .edge_percent = 90});
  const CoreProblem core = core_of(sketch);
  DualBound dual(core);
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, 1);
  EXPECT_FALSE(dive(core, dual, 100, 0.2, 4, {}, meter));
}

}  // namespace
}  // namespace shardplan
