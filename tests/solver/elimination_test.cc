#include "solver/bounds/elimination.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "solver/presolve/presolve.h"
#include "solver/searches/search_list.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kEndless = std::numeric_limits<std::uint64_t>::max();

TEST(Elimination, FindsWhatTryingAllChoicesFinds) {
  int num_compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    RandomProblemOptions options = random_options(random);
    options.limit_percent = 150;
    const StrategyProblem problem = random_problem(random, options);
    // Without reduction, so that whole problems reach it.
    const Presolve presolve(problem, {}, Deadline(0, {}), {}, false, Presolve::Memory::kIgnored);
    if (presolve.is_infeasible() || !presolve.is_exact()) continue;
    const Elimination elimination(presolve.core());
    ASSERT_TRUE(elimination.is_possible());
    const Deadline deadline(0, {});
    WorkMeter meter(deadline, kEndless);
    const auto found = elimination.run(presolve.core().costs, meter);
    ASSERT_TRUE(found);
    const std::optional<std::int64_t> optimum = brute_force(problem);
    ASSERT_EQ(found->cost < presolve.core().big_m, optimum.has_value()) << describe(problem);
    if (!optimum) continue;
    ++num_compared;
    EXPECT_EQ(static_cast<std::int64_t>(found->cost) + presolve.constant_cost(), *optimum) << describe(problem);
    EXPECT_EQ(evaluate(problem, presolve.expand(found->choice)).value({}), *optimum) << describe(problem);
  }
  EXPECT_GT(num_compared, 200);
}

/// What a run over so many equal layers, forward and backward, comes to.
struct LayersRun {
  std::size_t entries = 0;
  std::size_t steps_made = 0;
};
LayersRun run_layers(std::size_t layers) {
  const StrategyProblem problem =
      layered_problem({.layers = layers, .width = 10, .strategies = 24, .training = true, .limit_percent = 200});
  const Presolve presolve(problem, {}, Deadline(0, {}), {}, true, Presolve::Memory::kIgnored);
  const Elimination elimination(presolve.core());
  EXPECT_TRUE(elimination.is_possible());
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, kEndless);
  const auto found = elimination.run(presolve.core().costs, meter);
  EXPECT_TRUE(found);
  return {found->entries, presolve.core().num_nodes() - found->repeated_steps};
}

TEST(Elimination, MakesTheTablesOfEqualLayersOnce) {
  const LayersRun few = run_layers(12);
  const LayersRun many = run_layers(48);
  EXPECT_EQ(few.entries, many.entries);
  EXPECT_EQ(few.steps_made, many.steps_made);
}

TEST(Elimination, ProvesTrainingLayersWithoutMemoryLimits) {
  const StrategyProblem problem =
      layered_problem({.layers = 6, .width = 20, .strategies = 64, .training = true, .limit_percent = 200});
  SearchOptions options;
  options.limits.work = 500'000'000;
  for (const char* name : {"auto", "elimination"}) {
    const PlanResult result = make_search(name)->search(problem, options);
    EXPECT_EQ(result.status, PlanStatus::kOptimal) << name;
    EXPECT_EQ(result.found_by, "elimination") << name;
  }
}

TEST(Elimination, EndsWithoutAnAnswerWhenItsWorkIsSpent) {
  const StrategyProblem problem = layered_problem({.layers = 2, .width = 10, .strategies = 24, .training = true});
  const Presolve presolve(problem, {}, Deadline(0, {}), {}, true, Presolve::Memory::kIgnored);
  const Elimination elimination(presolve.core());
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, 100);
  EXPECT_FALSE(elimination.run(presolve.core().costs, meter));
}

}  // namespace
}  // namespace shardplan
