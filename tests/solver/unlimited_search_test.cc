#include "solver/searches/unlimited_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "solver/core/restricted_core.h"
#include "solver/presolve/presolve.h"
#include "solver/searches/portfolio_search.h"
#include "solver/searches/search_list.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

RandomProblemOptions without_limits(Random& random) {
  RandomProblemOptions options = random_options(random);
  options.limit_percent = 150;
  return options;
}

CoreChoice random_choice(const CoreProblem& core, Random& random) {
  CoreChoice choice;
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    choice.push_back(static_cast<std::uint32_t>(random.below(core.num_values(node))));
  }
  return choice;
}

TEST(UnlimitedSearch, FindsTheOptimumByPassesAndRemovedValuesAlone) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, without_limits(random));
    const Presolve presolve(problem, {}, Deadline(0, {}), {}, false, Presolve::Memory::kIgnored);
    if (presolve.is_infeasible() || !presolve.is_exact()) continue;
    CoreSearchOptions options;
    options.eliminates = false;
    options.work = 20'000'000;
    options.seed = seed;
    if (seed % 3 == 0) options.starts = {random_choice(presolve.core(), random)};
    const CoreSearchResult found = search_without_limits(presolve.core(), options, Deadline(0, {}));
    const std::optional<std::int64_t> optimum = brute_force(problem);
    ASSERT_EQ(found.choice.has_value(), optimum.has_value()) << describe(problem);
    EXPECT_TRUE(found.is_complete) << describe(problem);
    if (!optimum) continue;
    ++num_compared;
    const auto value = [&](double cost) { return static_cast<std::int64_t>(cost) + presolve.constant_cost(); };
    EXPECT_EQ(value(found.cost), *optimum) << describe(problem);
    EXPECT_LE(value(found.bound), *optimum) << describe(problem);
    EXPECT_EQ(evaluate(problem, presolve.expand(*found.choice)).value({}), *optimum) << describe(problem);
  }
  EXPECT_GT(num_compared, 150);
}

TEST(UnlimitedSearch, MakesLayersSmallerUntilTheyAreProven) {
  const StrategyProblem problem = layered_problem({.layers = 3, .width = 8, .strategies = 12, .training = true});
  const Presolve presolve(problem, {}, Deadline(0, {}), {}, true, Presolve::Memory::kIgnored);
  const CoreSearchResult exact = search_without_limits(presolve.core(), {}, Deadline(0, {}));
  CoreSearchOptions options;
  options.eliminates = false;
  options.work = 100'000'000;
  const CoreSearchResult first = search_without_limits(presolve.core(), options, Deadline(0, {}));
  const CoreSearchResult second = search_without_limits(presolve.core(), options, Deadline(0, {}));
  EXPECT_TRUE(exact.is_complete);
  EXPECT_TRUE(first.is_complete);
  EXPECT_LE(first.bound, exact.cost);
  EXPECT_GE(first.cost, exact.cost);
  EXPECT_EQ(first.choice, second.choice);
  EXPECT_EQ(first.bound, second.bound);
}

// Problems too large to try all choices; GLPK says what is best.
TEST(SearchInTurns, FindsTheOptimumUnderLimitsOnSmallerCoresToo) {
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
    const PlanResult best = make_search("ilp")->search(problem, ilp_options);
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

TEST(RestrictedCore, CostsAndHoldsWhatItsChoicesDoInTheWholeCore) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    const Presolve presolve(problem, {}, Deadline(0, {}), {}, false);
    if (presolve.is_infeasible()) continue;
    const CoreProblem& core = presolve.core();
    std::vector<std::uint8_t> alive(core.costs.size());
    for (std::uint8_t& item : alive) item = random.below(3) > 0;
    const CoreChoice kept = random_choice(core, random);
    for (std::size_t node = 0; node < core.num_nodes(); ++node) alive[core.first_value[node] + kept[node]] = 1;
    const auto restricted = restrict_core(core, alive, 1'000'000);
    ASSERT_TRUE(restricted);
    EXPECT_EQ(static_cast<std::ptrdiff_t>(restricted->core.costs.size()), std::count(alive.begin(), alive.end(), 1));
    for (int round = 0; round < 10; ++round) {
      const CoreChoice choice = random_choice(restricted->core, random);
      const CoreEvaluation whole = evaluate(core, restricted->expand(choice));
      EXPECT_EQ(evaluate(restricted->core, choice).cost, whole.cost);
      EXPECT_EQ(evaluate(restricted->core, choice).excess, whole.excess);
      EXPECT_EQ(restricted->nearest(restricted->expand(choice)), choice);
      ++num_compared;
    }
    EXPECT_EQ(restrict_core(core, alive, 0).has_value(), core.neighbours.empty());
  }
  EXPECT_GT(num_compared, 800);
}

}  // namespace
}  // namespace shardplan
