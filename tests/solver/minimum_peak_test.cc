#include "solver/minimum_peak.h"

#include <gtest/gtest.h>

#include "solver/searches/search_list.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

/// The least peak of all choices without kForbidden that satisfy the limits, by trying all.
std::optional<Bytes> brute_force_peak(const StrategyProblem& problem) {
  std::optional<Bytes> best;
  for_each_choice(problem, [&](const Choice& choice) {
    const Evaluation evaluation = evaluate(problem, choice);
    if (evaluation.feasible && (!best || evaluation.peak_bytes < *best)) best = evaluation.peak_bytes;
  });
  return best;
}

TEST(MinimumPeakTest, BracketsTheLeastPeak) {
  const std::unique_ptr<Search> search = make_search(kDefaultSearch);
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

TEST(MinimumPeakTest, SaysWhatLeftTheBracketOpen) {
  const StrategyProblem problem =
      layered_problem({.layers = 2, .width = 8, .strategies = 8, .training = true, .limit_percent = 100});
  const std::unique_ptr<Search> search = make_search(kDefaultSearch);
  SearchOptions options;
  options.limits.work = 160'000;  // a sixteenth for each search
  const MinimumPeak by_work = minimum_peak(problem, *search, options);
  if (by_work.status != PlanStatus::kOptimal) {
    EXPECT_EQ(by_work.stopped_by, Limit::kWork);
    EXPECT_LT(by_work.infeasible + 1, by_work.feasible);
  }
  options.limits.work = 3'200'000'000;
  const MinimumPeak rough = minimum_peak(problem, *search, options, 500'000);
  if (rough.status != PlanStatus::kOptimal) {
    EXPECT_EQ(rough.stopped_by, Limit::kGap);
    EXPECT_LE(rough.feasible - rough.infeasible, 2 + rough.feasible / 2);
  }
  std::stop_source stop;
  stop.request_stop();
  options.limits.stop = stop.get_token();
  const MinimumPeak stopped = minimum_peak(problem, *search, options);
  EXPECT_NE(stopped.status, PlanStatus::kInfeasible);
  if (stopped.status != PlanStatus::kOptimal) {
    EXPECT_EQ(stopped.stopped_by, Limit::kInterrupted);
  }
}

/// Proves that nothing holds less than 720 bytes; from 1000 bytes on it finds a choice that holds 1000.
class HalfBlindSearch : public Search {
 public:
  PlanResult search(const StrategyProblem& problem, const SearchOptions&) const override {
    PlanResult result;
    const Bytes limit = problem.memory_limits[0];
    result.status = limit < 720    ? PlanStatus::kInfeasible
                    : limit < 1000 ? PlanStatus::kNoPlanFound
                                   : PlanStatus::kFeasible;
    if (limit >= 1000) result.choice = Choice{{StrategyId(1)}};
    if (result.status == PlanStatus::kNoPlanFound) result.stopped_by = Limit::kWork;
    return result;
  }
};

TEST(MinimumPeakTest, RaisesTheBoundOnceMoreWhereTheBisectionIsLeftUnsettled) {
  StrategyProblem problem;
  problem.memory_limits = {2000};
  problem.strategy_tables = {{{{0, 0}, {0, 0}}}};
  problem.usage_tables = {{{0, 1000}}};
  problem.nodes.push_back({StrategyTableId(0), {{UsageTableId(0), 0, 1}}});
  const MinimumPeak result = minimum_peak(problem, HalfBlindSearch(), {}, 100'000);
  EXPECT_EQ(result.feasible, 1000);
  // 499 is proven, 749, 874 and 937 are not; then the middle between 499 and 937.
  EXPECT_EQ(result.infeasible, 718);
  EXPECT_EQ(result.stopped_by, Limit::kWork);
}

}  // namespace
}  // namespace shardplan
