#include "solver/minimum_peak.h"

#include <gtest/gtest.h>

#include "solver/searches/search_list.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

/// Of all choices without kForbidden that hold the limits, by trying all.
std::optional<Bytes> brute_force_peak(const StrategyProblem& problem) {
  std::optional<Bytes> best;
  for_each_choice(problem, [&](const Choice& choice) {
    const Evaluation evaluation = evaluate(problem, choice);
    if (evaluation.feasible && (!best || evaluation.peak_bytes < *best)) best = evaluation.peak_bytes;
  });
  return best;
}

TEST(MinimumPeak, BracketsTheLeastPeak) {
  const std::unique_ptr<Search> search = make_search("auto");
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 5000);
    const StrategyProblem problem = random_problem(random, random_options(random));
    SearchOptions options;
    options.limits.work = 200'000'000;
    const MinimumPeak result = minimum_peak(problem, *search, options);
    const std::optional<Bytes> least = brute_force_peak(problem);
    ASSERT_EQ(result.choice.has_value(), least.has_value()) << describe(problem);
    if (!least) continue;
    EXPECT_EQ(result.feasible, *least) << describe(problem);
    EXPECT_EQ(result.infeasible, *least - 1) << describe(problem);
    EXPECT_EQ(evaluate(problem, *result.choice).peak_bytes, result.feasible);
  }
}

TEST(MinimumPeak, ProblemsOfRepeatedLayersAreReducedOnce) {
  // Every layer of a forward chain reduces to the same tables, so a hundred layers are proven without a search.
  const StrategyProblem problem =
      layered_problem({.layers = 96, .width = 8, .strategies = 24, .training = false, .limit_percent = 200});
  const PlanResult result = make_search("auto")->search(problem, {});
  EXPECT_EQ(result.status, PlanStatus::kOptimal);
  EXPECT_EQ(result.found_by, "presolve");
}

}  // namespace
}  // namespace shardplan
