#include "solver/searches/auto_search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

bool has_stage(const PlanResult& result, std::string_view name) {
  return std::any_of(result.statistics.begin(), result.statistics.end(),
                     [&](const StageStatistics& stage) { return stage.stage == name; });
}

/// Too hard to be proven by little work: training layers under tight memory.
StrategyProblem hard_problem() {
  return layered_problem({.layers = 2, .width = 8, .strategies = 8, .training = true, .limit_percent = 10});
}

/// The most that can be held is above the limit, the optimum is not.
StrategyProblem slack_problem() {
  StrategyProblem problem;
  problem.strategy_tables = {{{{1, 0}, {5, 0}}}};
  problem.usage_tables = {{{2, 9}}};
  problem.nodes = {{StrategyTableId(0), {{UsageTableId(0), 0, 1}}}, {StrategyTableId(0), {{UsageTableId(0), 0, 1}}}};
  problem.memory_limits = {10};
  return problem;
}

TEST(AutoSearchTest, ProvesTrainingLayersWithoutMemoryLimits) {
  const StrategyProblem problem =
      layered_problem({.layers = 6, .width = 20, .strategies = 64, .training = true, .limit_percent = 200});
  SearchOptions options;
  options.limits.work = 500'000'000;
  const PlanResult result = make_auto_search()->search(problem, options);
  EXPECT_EQ(result.status, PlanStatus::kOptimal);
  EXPECT_EQ(result.found_by, "elimination");
  EXPECT_EQ(result.stopped_by, std::nullopt);
}

TEST(AutoSearchTest, AnOptimumWithoutMemoryThatFitsIsTheAnswer) {
  const PlanResult result = make_auto_search()->search(slack_problem(), {});
  EXPECT_EQ(result.status, PlanStatus::kOptimal);
  EXPECT_EQ(result.cost, 2);
  EXPECT_TRUE(has_stage(result, "presolve without memory"));
  EXPECT_FALSE(has_stage(result, "presolve"));  // the problem with memory was not needed
}

TEST(AutoSearchTest, WhereMemoryBindsItIsNotIgnored) {
  const StrategyProblem problem = slack_problem();
  SearchOptions options;
  options.memory_binds = true;
  const PlanResult result = make_auto_search()->search(problem, options);
  EXPECT_EQ(result.status, PlanStatus::kOptimal);
  EXPECT_EQ(result.cost, 2);
  EXPECT_FALSE(has_stage(result, "presolve without memory"));
  EXPECT_TRUE(has_stage(result, "presolve"));
}

TEST(AutoSearchTest, SaysWhatStoppedIt) {
  const StrategyProblem problem = hard_problem();
  const std::unique_ptr<Search> search = make_auto_search();
  SearchOptions options;
  options.limits.work = 200'000;
  PlanResult result = search->search(problem, options);
  EXPECT_EQ(result.status, PlanStatus::kFeasible);
  EXPECT_EQ(result.stopped_by, Limit::kWork);

  // Enough for passes, whatever the work.
  const std::int64_t bound = result.lower_bound;
  options.limits.passes = 2000;
  result = search->search(problem, options);
  EXPECT_TRUE(result.status == PlanStatus::kOptimal || result.lower_bound > bound);
  const std::int64_t later_bound = result.lower_bound;

  // But not once the answer is good enough for what was done.
  options.limits.loose_gap = 100;
  result = search->search(problem, options);
  EXPECT_EQ(result.stopped_by, Limit::kGap);
  EXPECT_LT(result.lower_bound, later_bound);

  options.limits = {};
  options.limits.work = 1'000'000'000;
  options.limits.early_work = 200'000;
  options.limits.early_gap = 100;
  result = search->search(problem, options);
  EXPECT_EQ(result.stopped_by, Limit::kGap);
  EXPECT_LT(result.lower_bound, later_bound);

  // A loose answer is given up early, whatever work there would be.
  options.limits = {};
  options.limits.work = 1'000'000'000;
  options.limits.give_up_work = 200'000;
  result = search->search(problem, options);
  EXPECT_EQ(result.stopped_by, Limit::kWork);
  EXPECT_EQ(result.status, PlanStatus::kFeasible);

  // Unless branch and bound may go on.
  options.limits.work = 200'000;
  options.limits.exact_work = 1'000'000'000;
  result = search->search(problem, options);
  EXPECT_TRUE(result.status == PlanStatus::kOptimal || result.lower_bound > bound);

  options.limits = {};
  options.limits.gap = 100;
  result = search->search(problem, options);
  EXPECT_EQ(result.stopped_by, Limit::kGap);
  EXPECT_LE(static_cast<double>(result.cost - result.lower_bound), 100 * static_cast<double>(result.lower_bound));

  options.limits = {};
  options.limits.seconds = 1e-6;
  result = search->search(problem, options);
  EXPECT_EQ(result.stopped_by, Limit::kTime);

  std::stop_source stop;
  options.limits = {};
  options.limits.stop = stop.get_token();
  options.limits.progress = [&](const SearchProgress& progress) {
    if (progress.cost) stop.request_stop();
  };
  result = search->search(problem, options);
  EXPECT_EQ(result.stopped_by, Limit::kInterrupted);
  EXPECT_TRUE(result.choice);
}

TEST(AutoSearchTest, ReportsRisingBoundsAndFallingCosts) {
  SearchOptions options;
  options.limits.work = 20'000'000;
  std::int64_t bound = 0;
  std::optional<std::int64_t> cost;
  int num_reports = 0;
  options.limits.progress = [&](const SearchProgress& progress) {
    ++num_reports;
    EXPECT_GE(progress.lower_bound, bound);
    bound = progress.lower_bound;
    EXPECT_TRUE(!cost || (progress.cost && *progress.cost <= *cost));
    cost = progress.cost;
  };
  const PlanResult result = make_auto_search()->search(hard_problem(), options);
  EXPECT_GT(num_reports, 3);
  EXPECT_EQ(result.cost, cost);
  EXPECT_GE(result.lower_bound, bound);
}

TEST(AutoSearchTest, WithoutABoundItStillImproves) {
  SearchOptions options;
  options.limits.work = 20'000'000;
  const StrategyProblem problem = hard_problem();
  const PlanResult local =
      make_auto_search({.presolve = true, .is_exact = false, .has_bound = false})->search(problem, options);
  ASSERT_TRUE(local.choice);
  EXPECT_EQ(local.stopped_by, Limit::kWork);
  const PlanResult all = make_auto_search()->search(problem, options);
  EXPECT_GE(local.cost, all.lower_bound);
  EXPECT_LE(local.lower_bound, all.cost);
  EXPECT_FALSE(has_stage(local, "branch and bound"));
}

}  // namespace
}  // namespace shardplan
