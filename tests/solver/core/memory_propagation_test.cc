#include "solver/core/memory_propagation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

TEST(MemoryPropagationTest, RemovesNoValueOfAChoiceThatFits) {
  int num_removed = 0;
  int num_impossible = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    CoreSketch sketch = random_core(random, {.limit_percent = 25});
    if (seed % 4 == 0 && !sketch.limits.empty()) sketch.limits[0] -= 1;
    const CoreProblem core = core_of(sketch);
    std::vector<std::uint8_t> alive(core.costs.size(), 1);
    for (std::uint8_t& item : alive) item = random.below(5) > 0;
    const std::vector<std::uint8_t> before = alive;
    const bool holds = propagate_memory(core, alive);
    bool any = false;
    for_each_choice(sketch, [&](const CoreChoice& choice) {
      for (std::size_t node = 0; node < choice.size(); ++node) {
        if (!before[core.first_value[node] + choice[node]]) return;
      }
      if (sketch.excess(choice) > 0) return;
      any = true;
      for (std::size_t node = 0; node < choice.size(); ++node) {
        EXPECT_TRUE(!holds || alive[core.first_value[node] + choice[node]]) << describe(sketch);
      }
    });
    EXPECT_TRUE(holds || !any) << describe(sketch);
    num_impossible += !holds;
    if (holds)
      num_removed += static_cast<int>(std::count(before.begin(), before.end(), 1)) -
                     static_cast<int>(std::count(alive.begin(), alive.end(), 1));
  }
  EXPECT_GT(num_removed, 20);
  EXPECT_GT(num_impossible, 20);
}

TEST(MemoryPropagationTest, GoesOnAsLongAsLeastUsagesRise) {
  // Value 0 of node 0 does not fit at time 1. Value 1 holds 3 at time 0, where then no 3 of node 1 fit beside it.
  CoreSketch sketch;
  sketch.costs = {{0, 0}, {0, 0}};
  sketch.segments = {{0, 0, 1, {0, 3}}, {0, 1, 2, {6, 0}}, {1, 0, 1, {0, 3}}};
  sketch.limits = {5, 5};
  const CoreProblem core = core_of(sketch);
  std::vector<std::uint8_t> alive(core.costs.size(), 1);
  EXPECT_TRUE(propagate_memory(core, alive));
  EXPECT_EQ(alive, (std::vector<std::uint8_t>{0, 1, 1, 0}));
}

}  // namespace
}  // namespace shardplan
