#include "solver/searches/unlimited_search.h"

#include <gtest/gtest.h>

#include "solver/presolve/presolve.h"
#include "tests/support/cores.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

TEST(UnlimitedSearchTest, FindsTheOptimumByPassesAndFixedValuesAlone) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(random, {.max_nodes = 7, .edge_percent = 70, .times = 0});
    const CoreProblem core = core_of(sketch);
    CoreSearchOptions options;
    options.eliminates = false;
    options.work = 20'000'000;
    options.seed = seed;
    if (seed % 3 == 0) options.starts = {random_choice(sketch, random)};
    const CoreSearchResult found = search_without_limits(core, options, Deadline(0, {}));
    const std::optional<CoreChoice> best = brute_force(sketch);
    ASSERT_EQ(found.choice.has_value(), best.has_value()) << describe(sketch);
    EXPECT_TRUE(found.is_complete) << describe(sketch);
    EXPECT_EQ(found.stopped_by, std::nullopt);
    if (!best) continue;
    ++num_compared;
    EXPECT_EQ(found.cost, sketch.cost(*best)) << describe(sketch);
    EXPECT_LE(found.bound, sketch.cost(*best)) << describe(sketch);
    EXPECT_EQ(sketch.cost(*found.choice), found.cost) << describe(sketch);
  }
  EXPECT_GT(num_compared, 150);
}

TEST(UnlimitedSearchTest, MakesLayersSmallerUntilTheyAreProven) {
  const StrategyProblem problem = layered_problem({.layers = 3, .width = 8, .strategies = 12, .training = true});
  const Presolve presolve(problem, {}, Deadline(0, {}), {}, true, Presolve::Memory::kIgnored);
  const CoreSearchResult exact = search_without_limits(presolve.core(), {}, Deadline(0, {}));
  CoreSearchOptions options;
  options.eliminates = false;
  options.work = 100'000'000;
  const CoreSearchResult first = search_without_limits(presolve.core(), options, Deadline(0, {}));
  const CoreSearchResult second = search_without_limits(presolve.core(), options, Deadline(0, {}));
  EXPECT_TRUE(exact.is_complete);
  EXPECT_EQ(exact.found_by, "elimination");
  EXPECT_TRUE(first.is_complete);
  EXPECT_LE(first.bound, exact.cost);
  EXPECT_GE(first.cost, exact.cost);
  EXPECT_EQ(first.choice, second.choice);
  EXPECT_EQ(first.bound, second.bound);
}

TEST(UnlimitedSearchTest, LargePassesAreCompletedExactly) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const CoreSketch sketch = large_triangle(seed);
    const CoreProblem core = core_of(sketch);
    CoreSearchOptions options;
    options.eliminates = false;
    options.starts = {{0, 0, 0}};
    const CoreSearchResult found = search_without_limits(core, options, Deadline(0, {}));
    EXPECT_TRUE(found.is_complete);
    EXPECT_EQ(found.cost, kBestOfLargeTriangle);
    EXPECT_EQ(sketch.cost(*found.choice), found.cost);
  }
}

TEST(UnlimitedSearchTest, SaysWhichLimitItReached) {
  // A clique of twelve nodes with twelve values each, which no short search decides.
  CoreSketch sketch;
  Random random(1);
  sketch.costs.assign(12, std::vector<double>(12, 0));
  for (std::uint32_t a = 0; a < 12; ++a) {
    for (std::uint32_t b = a + 1; b < 12; ++b) {
      CoreSketch::Edge edge{a, b, std::vector<std::vector<double>>(12, std::vector<double>(12))};
      for (std::vector<double>& row : edge.costs) {
        for (double& cost : row) cost = static_cast<double>(random.below(1000));
      }
      sketch.edges.push_back(std::move(edge));
    }
  }
  const CoreProblem core = core_of(sketch);
  CoreSearchOptions options;
  options.eliminates = false;
  options.work = 100'000;
  EXPECT_EQ(search_without_limits(core, options, Deadline(0, {})).stopped_by, Limit::kWork);
  std::stop_source stop;
  stop.request_stop();
  options.work = 0;
  EXPECT_EQ(search_without_limits(core, options, Deadline(0, stop.get_token())).stopped_by, Limit::kInterrupted);
  options.good_enough = {{0, 1e15}};
  EXPECT_EQ(search_without_limits(core, options, Deadline(0, {})).stopped_by, Limit::kGap);
}

}  // namespace
}  // namespace shardplan
