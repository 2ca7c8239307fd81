#include <gtest/gtest.h>

#include <memory>

#include "planner/auto_search.h"
#include "planner/search.h"
#include "tests/planner/problems.h"

namespace shardplan {
namespace {

/// What every search promises, whatever it is; `optimum` is the brute-force answer.
void expect_contract(const StrategyProblem& problem, const SearchOptions& options, const PlanResult& result,
                     std::optional<std::int64_t> optimum) {
  const bool has_choice = result.status == PlanStatus::kOptimal || result.status == PlanStatus::kFeasible;
  ASSERT_EQ(has_choice, result.choice.has_value());
  if (has_choice) {
    const Evaluation evaluation = evaluate(problem, *result.choice);
    EXPECT_TRUE(evaluation.feasible);
    EXPECT_EQ(evaluation.value(options.objective), result.cost);
    EXPECT_LE(result.lower_bound, result.cost);
  }
  if (optimum) {
    EXPECT_LE(result.lower_bound, *optimum);
    EXPECT_NE(result.status, PlanStatus::kInfeasible);
    if (result.status == PlanStatus::kOptimal) {
      EXPECT_EQ(result.cost, *optimum);
    }
  } else {
    EXPECT_FALSE(has_choice);
  }
}

class SearchContractTest : public testing::TestWithParam<std::string> {};

TEST_P(SearchContractTest, HoldsOnSmallRandomProblems) {
  const std::unique_ptr<Search> search = make_search(GetParam());
  ASSERT_NE(search, nullptr);
  int num_optimal = 0, num_solvable = 0, num_proven_infeasible = 0, num_infeasible = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    SearchOptions options;
    options.objective = {static_cast<std::int64_t>(random.below(3)), static_cast<std::int64_t>(1 + random.below(2))};
    options.seed = seed;
    options.threads = seed % 16 == 0 ? 2 : 1;
    options.limits.work = 20'000'000;
    const std::optional<std::int64_t> optimum = brute_force(problem, options.objective);
    const PlanResult result = search->search(problem, options);
    expect_contract(problem, options, result, optimum);
    if (HasFailure()) {
      FAIL() << describe(problem) << "optimum " << optimum.value_or(-1) << ", " << to_string(result.status) << " cost "
             << result.cost << " bound " << result.lower_bound;
    }
    (optimum ? num_solvable : num_infeasible) += 1;
    num_optimal += result.status == PlanStatus::kOptimal;
    num_proven_infeasible += result.status == PlanStatus::kInfeasible;
  }
  if (GetParam() == "auto" || GetParam() == "ilp") {
    EXPECT_EQ(num_optimal, num_solvable);
    EXPECT_EQ(num_proven_infeasible, num_infeasible);
  }
  RecordProperty("optimal", num_optimal);
}

INSTANTIATE_TEST_SUITE_P(All, SearchContractTest, testing::ValuesIn(search_names()),
                         [](const auto& test) { return test.param; });

TEST(Presolve, OnAndOffGiveTheSameOptimum) {
  for (std::uint64_t seed = 10000; seed < 10800; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    const PlanResult reduced = make_auto_search()->search(problem, {});
    const PlanResult plain = make_auto_search({.presolve = false, .is_exact = true, .has_bound = true})->search(problem, {});
    EXPECT_EQ(reduced.status, plain.status) << describe(problem);
    EXPECT_EQ(reduced.cost, plain.cost) << describe(problem);
    expect_contract(problem, {}, plain, brute_force(problem));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace shardplan
