#include <gtest/gtest.h>

#include <memory>

#include "solver/searches/auto_search.h"
#include "solver/searches/search_list.h"
#include "solver/tied_problem.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

/// The contract of every search; `optimum` is the brute-force answer.
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
  if (result.status == PlanStatus::kOptimal || result.status == PlanStatus::kInfeasible) {
    EXPECT_EQ(result.stopped_by, std::nullopt);
  }
  // Only a limit that was set can be reached.
  if (result.stopped_by == Limit::kWork) {
    EXPECT_GT(options.limits.work, 0u);
  }
  if (result.stopped_by == Limit::kGap) {
    EXPECT_GT(options.limits.gap, 0);
  }
  EXPECT_NE(result.stopped_by, Limit::kTime);
}

/// The result; every bound reported on the way is checked too, since that of the result is limited to its cost.
PlanResult searched(const Search& search, const StrategyProblem& problem, SearchOptions options,
                    std::optional<std::int64_t> optimum) {
  options.limits.progress = [&](const SearchProgress& progress) {
    EXPECT_LE(progress.lower_bound, optimum.value_or(INT64_MAX));
  };
  return search.search(problem, options);
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
    const PlanResult result = searched(*search, problem, options, optimum);
    expect_contract(problem, options, result, optimum);
    if (HasFailure()) {
      FAIL() << describe(problem) << "optimum " << optimum.value_or(-1) << ", " << to_string(result.status) << " cost "
             << result.cost << " bound " << result.lower_bound;
    }
    (optimum ? num_solvable : num_infeasible) += 1;
    num_optimal += result.status == PlanStatus::kOptimal;
    num_proven_infeasible += result.status == PlanStatus::kInfeasible;
  }
  if (find_search(GetParam())->is_exact) {
    EXPECT_EQ(num_optimal, num_solvable);
    EXPECT_EQ(num_proven_infeasible, num_infeasible);
  }
  RecordProperty("optimal", num_optimal);
}

/// All nodes joined, all with memory: presolve leaves nearly everything to the search itself.
StrategyProblem dense_problem(Random& random) {
  RandomProblemOptions options;
  options.max_nodes = 6;
  options.max_strategies = 5;
  options.forbidden_percent = random.below(3) == 0 ? 15 : 0;
  options.edge_percent = 180;
  const int limits[] = {5, 15, 30, 45};
  options.limit_percent = limits[random.below(4)];
  options.largest_cost = random.below(2) == 0 ? 50 : 1'000'000;
  StrategyProblem problem;
  do {
    problem = random_problem(random, options);
  } while (problem.nodes.size() < 5);
  return problem;
}

TEST_P(SearchContractTest, HoldsOnDenseProblems) {
  const std::unique_ptr<Search> search = make_search(GetParam());
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 77);
    const StrategyProblem problem = dense_problem(random);
    SearchOptions options;
    options.seed = seed;
    options.threads = seed % 8 == 0 ? 2 : 1;
    options.limits.work = 20'000'000;
    if (seed % 3 == 0) {
      options.start.emplace();  // usually not feasible
      options.start->strategy.resize(problem.nodes.size(), StrategyId(0));
    }
    const std::optional<std::int64_t> optimum = brute_force(problem);
    const PlanResult result = searched(*search, problem, options, optimum);
    expect_contract(problem, options, result, optimum);
    if (optimum && (find_search(GetParam())->is_exact)) {
      EXPECT_EQ(result.status, PlanStatus::kOptimal);
    }
    if (HasFailure()) {
      FAIL() << describe(problem) << "optimum " << optimum.value_or(-1) << ", " << to_string(result.status) << " cost "
             << result.cost << " bound " << result.lower_bound;
    }
  }
}

// Layers that take one strategy: few nodes, with many uses of memory and with edges from a node to itself.
TEST_P(SearchContractTest, HoldsOnTiedLayers) {
  const std::unique_ptr<Search> search = make_search(GetParam());
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed + 333);
    const int limits[] = {0, 10, 30, 60, 100};
    const RepeatedProblem repeated =
        random_repeated_problem(random, 2 + random.below(8), 1 + random.below(4), 4, limits[random.below(5)]);
    const StrategyProblem problem = tied_problem(repeated.problem, repeated.ties).problem;
    SearchOptions options;
    options.seed = seed;
    options.threads = seed % 16 == 0 ? 2 : 1;
    options.limits.work = 20'000'000;
    const std::optional<std::int64_t> optimum = brute_force(problem);
    const PlanResult result = searched(*search, problem, options, optimum);
    expect_contract(problem, options, result, optimum);
    if (optimum && find_search(GetParam())->is_exact) {
      EXPECT_EQ(result.status, PlanStatus::kOptimal);
    }
    if (HasFailure())
      FAIL() << describe(problem) << "optimum " << optimum.value_or(-1) << ", " << to_string(result.status);
  }
}

TEST_P(SearchContractTest, RepeatsItselfAndEndsAtItsLimits) {
  const std::unique_ptr<Search> search = make_search(GetParam());
  const StrategyProblem problem =
      layered_problem({.layers = 2, .width = 8, .strategies = 8, .training = true, .limit_percent = 10});
  for (const int threads : {1, 2}) {
    SearchOptions options;
    options.threads = threads;
    options.seed = 3;
    options.limits.work = 8'000'000;
    const PlanResult first = search->search(problem, options);
    const PlanResult second = search->search(problem, options);
    EXPECT_EQ(first.status, second.status);
    EXPECT_EQ(first.choice, second.choice);
    EXPECT_EQ(first.lower_bound, second.lower_bound);
    expect_contract(problem, options, first, first.choice ? std::optional(first.cost) : std::nullopt);
  }
  std::stop_source stop;
  stop.request_stop();
  SearchOptions options;
  options.limits.stop = stop.get_token();
  const PlanResult stopped = search->search(problem, options);  // ends at once, with or without a choice
  EXPECT_NE(stopped.status, PlanStatus::kInfeasible);
  if (stopped.status != PlanStatus::kOptimal) {
    EXPECT_EQ(stopped.stopped_by, Limit::kInterrupted);
  }
  if (stopped.choice) {
    EXPECT_TRUE(evaluate(problem, *stopped.choice).feasible);
  }
}

TEST_P(SearchContractTest, EndsNoWorseThanItsStart) {
  const std::unique_ptr<Search> search = make_search(GetParam());
  int num_started = 0;
  for (std::uint64_t seed = 20000; seed < 20150; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    const PlanResult best = make_auto_search()->search(problem, {});
    if (!best.choice) continue;
    ++num_started;
    SearchOptions options;
    options.start = best.choice;
    options.limits.work = seed % 2 == 0 ? 1 : 1'000'000;  // hardly any work: a known choice must not get lost
    const PlanResult result = search->search(problem, options);
    expect_contract(problem, options, result, best.cost);
    EXPECT_TRUE(result.choice.has_value());
    EXPECT_EQ(result.cost, best.cost);
    if (HasFailure()) FAIL() << describe(problem);
  }
  EXPECT_GT(num_started, 80);
}

TEST_P(SearchContractTest, TakesCostsThatLeave64BitsTogether) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{kForbidden - 1, kForbidden - 1}, {kForbidden - 2, 7}, {5, kForbidden}}}};
  problem.matrices = {{3, 3, {kForbidden - 1, 1, 1, 2, kForbidden - 3, 0, 1, 1, 1}}};
  for (int i = 0; i < 20; ++i) problem.nodes.push_back({StrategyTableId(0), {}});
  for (std::size_t i = 0; i + 1 < 20; ++i) problem.edges.push_back({NodeId(i), NodeId(i + 1), MatrixId(0)});
  SearchOptions options;
  options.objective = {1 << 20, 1 << 20};
  options.limits.work = 1'000'000;
  const PlanResult result = make_search(GetParam())->search(problem, options);
  EXPECT_NE(result.status, PlanStatus::kInfeasible);
  if (result.choice) {
    EXPECT_TRUE(evaluate(problem, *result.choice).feasible);
  }
}

// The best choice contains a weighted cost, or a sum of costs, that presolve cannot represent and therefore forbids.
TEST_P(SearchContractTest, ClaimsNothingOfChoicesThatItCannotRepresent) {
  const std::int64_t second = 1'000'000'000'000;
  StrategyProblem weighted;  // the first strategy of the first node costs 5 s; the other forces 4 s on each neighbour
  weighted.strategy_tables = {{{{0, 5 * second}, {0, 0}}}, {{{0, 0}, {0, 4 * second}}}};
  weighted.matrices = {{2, 2, {0, kForbidden, kForbidden, 0}}};
  weighted.nodes = {{StrategyTableId(0), {}}, {StrategyTableId(1), {}}, {StrategyTableId(1), {}}};
  for (std::size_t i = 1; i < 3; ++i) weighted.edges.push_back({NodeId(0), NodeId(i), MatrixId(0)});

  StrategyProblem added = weighted;  // the same with two edges between a pair, each of which can be represented
  const std::int64_t much = kForbidden / 10 * 7;
  added.strategy_tables = {{{{0, 0}, {0, 0}}}, {{{0, 0}, {0, 2 * much / 10 * 9}}}};
  added.matrices.push_back({2, 2, {much, kForbidden, kForbidden, 0}});
  for (int i = 0; i < 2; ++i) added.edges.push_back({NodeId(0), NodeId(1), MatrixId(1)});

  for (const auto& [problem, weight] : {std::pair{weighted, std::int64_t{1} << 16}, {added, std::int64_t{1}}}) {
    SearchOptions options;
    options.objective = {1, weight};
    options.limits.work = 20'000'000;
    const std::optional<std::int64_t> optimum = brute_force(problem, options.objective);
    ASSERT_TRUE(optimum && *optimum > kForbidden);
    expect_contract(problem, options, make_search(GetParam())->search(problem, options), optimum);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SearchContractTest, testing::ValuesIn(search_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace shardplan
