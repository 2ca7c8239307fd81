#include "solver/searches/ilp_search.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace shardplan {
namespace {

TEST(IlpSearchTest, AgreesWithTryingAllChoices) {
  int num_infeasible = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    const std::optional<std::int64_t> optimum = brute_force(problem);
    const PlanResult result = make_ilp_search()->search(problem, {});
    EXPECT_EQ(result.status, optimum ? PlanStatus::kOptimal : PlanStatus::kInfeasible) << describe(problem);
    if (optimum) {
      EXPECT_EQ(result.cost, *optimum) << describe(problem);
    }
    num_infeasible += !optimum;
    if (HasFailure()) return;
  }
  EXPECT_GT(num_infeasible, 10);
}

TEST(IlpSearchTest, RefusesProblemsThatAreTooLargeForGlpk) {
  const StrategyProblem problem =
      layered_problem({.layers = 8, .width = 20, .strategies = 48, .training = true, .limit_percent = 20});
  const PlanResult result = make_ilp_search()->search(problem, {});
  EXPECT_EQ(result.status, PlanStatus::kNoPlanFound);
  EXPECT_EQ(result.stopped_by, std::nullopt);
  EXPECT_GT(result.lower_bound, 0);  // presolve's
  EXPECT_NE(result.obstacle.find("too large"), std::string::npos) << result.obstacle;
}

TEST(IlpSearchTest, AStartCountsInTheEnd) {
  const StrategyProblem problem =
      layered_problem({.layers = 8, .width = 20, .strategies = 48, .training = true, .limit_percent = 100});
  SearchOptions options;
  options.start.emplace();
  options.start->strategy.resize(problem.nodes.size(), StrategyId(0));
  const Evaluation start = evaluate(problem, *options.start);
  const PlanResult result = make_ilp_search()->search(problem, options);
  EXPECT_EQ(result.choice.has_value(), start.feasible);
  if (start.feasible) {
    EXPECT_EQ(result.cost, start.value({}));
    EXPECT_EQ(result.found_by, "start");
  }
}

TEST(IlpSearchTest, AWorkLimitEndsBranching) {
  const StrategyProblem problem =
      layered_problem({.layers = 2, .width = 8, .strategies = 8, .training = true, .limit_percent = 10});
  SearchOptions options;
  options.limits.work = 1;
  const PlanResult result = make_ilp_search()->search(problem, options);
  if (result.status != PlanStatus::kOptimal) {
    EXPECT_EQ(result.stopped_by, Limit::kWork);
  }
}

}  // namespace
}  // namespace shardplan
