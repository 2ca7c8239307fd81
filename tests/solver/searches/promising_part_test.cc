#include "solver/searches/promising_part.h"

#include <gtest/gtest.h>

#include "solver/searches/portfolio_search.h"
#include "solver/searches/unlimited_search.h"
#include "tests/support/cores.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kWork = 1'000'000;

DualBound bound_of(const CoreProblem& core) {
  DualBound dual(core);
  for (int pass = 0; pass < 10; ++pass) dual.pass();
  return dual;
}

TEST(PromisingPartTest, FindsFeasibleChoicesNoWorseThanTheBestKnown) {
  const Deadline deadline(0, {});
  int num_parts = 0, num_better = 0, num_best = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::uint32_t times = seed % 2 == 0 ? 0 : 4;
    const CoreSketch sketch =
        random_core(random, {.max_nodes = 7, .max_values = 6, .edge_percent = 80, .limit_percent = 60, .times = times});
    const CoreProblem core = core_of(sketch);
    const std::optional<CoreChoice> optimum = brute_force(sketch);
    const CoreChoice known = random_choice(sketch, random);
    const DualBound dual = bound_of(core);
    const CoreSearch search = times == 0 ? search_without_limits : search_with_portfolio;
    const auto part = PromisingPart::of(core, dual, known, 1.5, {}, kWork);
    if (!part) continue;
    ++num_parts;
    const CoreSearchResult found = part->search(deadline, search);
    EXPECT_GT(found.work, 0u);
    if (!found.choice) {
      EXPECT_FALSE(sketch.is_feasible(known)) << describe(sketch);
      continue;
    }
    ASSERT_TRUE(sketch.is_feasible(*found.choice)) << describe(sketch);
    EXPECT_EQ(found.cost, sketch.cost(*found.choice));
    EXPECT_GE(found.cost, sketch.cost(*optimum));
    if (sketch.is_feasible(known)) {
      EXPECT_LE(found.cost, sketch.cost(known));
      num_better += found.cost < sketch.cost(known);
    }
    num_best += found.cost == sketch.cost(*optimum);
    EXPECT_EQ(part->search(deadline, search).choice, found.choice);
  }
  EXPECT_GT(num_parts, 100);
  EXPECT_GT(num_better, num_parts / 4);
  EXPECT_GT(num_best, num_parts / 3);
}

TEST(PromisingPartTest, APartAsLargeAsTheCoreIsNotSearched) {
  Random random(3);
  const CoreSketch sketch = random_core(random, {.max_nodes = 7, .max_values = 6, .edge_percent = 80});
  const CoreProblem core = core_of(sketch);
  EXPECT_FALSE(PromisingPart::of(core, bound_of(core), random_choice(sketch, random), 100, {}, kWork).has_value());
}

TEST(PromisingPartTest, ContainsTheBestChoiceWhateverTheBoundSays) {
  // The bound prefers value 0 of both nodes, which together exceed the limit; only the known choice fits.
  CoreSketch sketch;
  sketch.costs = {{0, 90, 90, 90, 90, 90, 90, 50}, {0, 90, 90, 90, 90, 90, 90, 50}};
  sketch.segments = {{0, 0, 1, {5, 5, 5, 5, 5, 5, 5, 0}}, {1, 0, 1, {5, 5, 5, 5, 5, 5, 5, 0}}};
  sketch.limits = {0};
  const CoreProblem core = core_of(sketch);
  const auto part = PromisingPart::of(core, bound_of(core), {7, 7}, 0.5, {}, kWork);
  ASSERT_TRUE(part.has_value());
  const CoreSearchResult found = part->search(Deadline(0, {}), search_with_portfolio);
  EXPECT_EQ(found.choice, (CoreChoice{7, 7}));
  EXPECT_EQ(found.cost, 100);
}

}  // namespace
}  // namespace shardplan
