#include "solver/searches/portfolio_search.h"

#include <gtest/gtest.h>

#include "solver/presolve/presolve.h"
#include "solver/searches/ilp_search.h"
#include "tests/support/cores.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

TEST(PortfolioSearchTest, FindsAndProvesTheOptimumOfSmallCores) {
  int num_infeasible = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreSketch sketch = random_core(
        random, {.max_nodes = 7, .edge_percent = 60, .limit_percent = 15 + static_cast<int>(random.below(60))});
    const CoreProblem core = core_of(sketch);
    CoreSearchOptions options;
    options.work = 50'000'000;
    options.threads = seed % 8 == 0 ? 2 : 1;
    options.seed = seed;
    const CoreSearchResult result = search_with_portfolio(core, options, Deadline(0, {}));
    const std::optional<CoreChoice> best = brute_force(sketch);
    EXPECT_TRUE(result.is_complete) << describe(sketch);
    EXPECT_EQ(result.stopped_by, std::nullopt);
    ASSERT_EQ(result.choice.has_value(), best.has_value()) << describe(sketch);
    num_infeasible += !best;
    if (!best) continue;
    EXPECT_EQ(result.cost, sketch.cost(*best)) << describe(sketch);
    EXPECT_EQ(result.bound, result.cost);
    EXPECT_EQ(sketch.cost(*result.choice), result.cost);
    EXPECT_EQ(sketch.excess(*result.choice), 0);
  }
  EXPECT_GT(num_infeasible, 5);
}

// Problems too large to try all choices; GLPK says what is best.
TEST(PortfolioSearchTest, FindsTheOptimumUnderLimitsOnSmallerCoresToo) {
  int num_compared = 0, num_smaller = 0;
  for (std::uint64_t seed = 0; seed < 160; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const RandomProblemOptions problem_options{.max_nodes = 16,
                                               .max_strategies = 8,
                                               .forbidden_percent = 0,
                                               .edge_percent = 20,
                                               .limit_percent = 10 + static_cast<int>(random.below(30)),
                                               .largest_cost = 1000,
                                               .times = 6};
    const StrategyProblem problem = random_problem(random, problem_options);
    const Presolve presolve(problem, {}, Deadline(0, {}), {}, false);
    if (presolve.is_infeasible() || presolve.core().limits.empty()) continue;
    SearchOptions ilp_options;
    ilp_options.limits.work = 500'000'000;
    const PlanResult best = make_ilp_search()->search(problem, ilp_options);
    if (best.status != PlanStatus::kOptimal) continue;
    ++num_compared;
    CoreSearchOptions options;
    options.work = 50'000'000;
    const CoreSearchResult found = search_with_portfolio(presolve.core(), options, Deadline(0, {}));
    ASSERT_TRUE(found.choice) << describe(problem);
    EXPECT_EQ(static_cast<std::int64_t>(found.cost) + presolve.constant_cost(), best.cost) << describe(problem);
    EXPECT_LE(static_cast<std::int64_t>(found.bound) + presolve.constant_cost(), best.cost) << describe(problem);
    EXPECT_EQ(evaluate(problem, presolve.expand(*found.choice)).value({}), best.cost) << describe(problem);
    for (const StageStatistics& stage : found.statistics) num_smaller += stage.stage == "smaller core";
  }
  EXPECT_GT(num_compared, 20);
  EXPECT_GT(num_smaller, 2);
}

// Of three nodes one can have its bytes, and at any price of bytes half of another can: 15 is what prices prove of 20. The two
// other nodes make passes long and can cost nothing.
TEST(PortfolioSearchTest, SubproblemsProveWhatPricesCannotWherePassesAreLongToo) {
  constexpr std::size_t kValues = 700;
  Random random(1);
  CoreSketch sketch;
  sketch.costs = {{0, 10}, {0, 10}, {0, 10}, std::vector<double>(kValues, 0), std::vector<double>(kValues, 0)};
  for (std::uint32_t node = 0; node < 3; ++node) sketch.segments.push_back({node, 0, 1, {2, 0}});
  sketch.limits = {3};
  CoreSketch::Edge edge{3, 4, {}};
  for (std::size_t row = 0; row < kValues; ++row) {
    edge.costs.emplace_back();
    for (std::size_t i = 0; i < kValues; ++i) edge.costs.back().push_back(static_cast<double>(random.below(4)));
  }
  sketch.edges = {edge};
  const CoreProblem core = core_of(sketch);
  ASSERT_GT(DualBound(core).work_per_pass(), 900'000u);
  for (const int threads : {1, 2}) {
    CoreSearchOptions options;
    options.threads = threads;
    const CoreSearchResult found = search_with_portfolio(core, options, Deadline(60, {}));
    EXPECT_TRUE(found.is_complete);
    EXPECT_EQ(found.cost, 20);
    EXPECT_EQ(found.bound, 20);
  }
}

TEST(PortfolioSearchTest, AChoiceKnownOutsideCountsForTheGap) {
  // As presolve does with a known cost: only better choices are left, of which there are none here.
  int num_by_gap = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    CoreSketch sketch = random_core(random, {.max_nodes = 7, .edge_percent = 60});
    const std::optional<CoreChoice> best = brute_force(sketch);
    if (!best) continue;
    const double optimum = sketch.cost(*best);
    CoreProblem core = core_of(sketch);
    core.big_m = optimum;
    CoreSearchOptions options;
    options.work = 50'000'000;
    options.known_cost = optimum;
    const CoreSearchResult proven = search_with_portfolio(core, options, Deadline(0, {}));
    EXPECT_FALSE(proven.choice.has_value());
    EXPECT_TRUE(proven.is_complete);
    options.good_enough = {{0, 1e12}};
    const CoreSearchResult found = search_with_portfolio(core, options, Deadline(0, {}));
    EXPECT_FALSE(found.choice.has_value());
    EXPECT_LE(found.bound, optimum);
    EXPECT_LE(found.work, proven.work);
    num_by_gap += found.stopped_by == Limit::kGap;
  }
  EXPECT_GT(num_by_gap, 10);
}

TEST(PortfolioSearchTest, SaysWhichLimitItReached) {
  const StrategyProblem problem =
      layered_problem({.layers = 2, .width = 8, .strategies = 8, .training = true, .limit_percent = 10});
  const Presolve presolve(problem, {}, Deadline(0, {}));
  CoreSearchOptions options;
  options.work = 1'000'000;
  const CoreSearchResult by_work = search_with_portfolio(presolve.core(), options, Deadline(0, {}));
  EXPECT_EQ(by_work.stopped_by, Limit::kWork);
  EXPECT_GE(by_work.work, options.work);
  options.good_enough = {{0, 1e12}};
  EXPECT_EQ(search_with_portfolio(presolve.core(), options, Deadline(0, {})).stopped_by, Limit::kGap);
  EXPECT_EQ(search_with_portfolio(presolve.core(), {}, Deadline(1e-9, {})).stopped_by, Limit::kTime);
}

}  // namespace
}  // namespace shardplan
