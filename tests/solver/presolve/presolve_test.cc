#include "solver/presolve/presolve.h"

#include <gtest/gtest.h>

#include "solver/searches/auto_search.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

/// The least cost of what presolve leaves, by trying all choices of the core.
std::optional<std::int64_t> least_of_core(const StrategyProblem& problem, const Presolve& presolve) {
  const CoreProblem& core = presolve.core();
  std::optional<std::int64_t> least;
  CoreChoice choice(core.num_nodes(), 0);
  for (;;) {
    const Evaluation evaluation = evaluate(problem, presolve.expand(choice));
    if (evaluation.feasible && (!least || evaluation.value({}) < *least)) least = evaluation.value({});
    std::size_t node = 0;
    for (; node < choice.size(); ++node) {
      if (++choice[node] < core.num_values(node)) break;
      choice[node] = 0;
    }
    if (node == choice.size()) return least;
  }
}

TEST(PresolveTest, LeavesAnOptimum) {
  std::size_t num_decided = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    const std::optional<std::int64_t> optimum = brute_force(problem);
    const Presolve presolve(problem, {}, Deadline(0, {}));
    EXPECT_EQ(presolve.is_infeasible() ? std::nullopt : least_of_core(problem, presolve), optimum) << describe(problem);
    // With a known cost more expensive choices may be lost, but not the best.
    if (optimum) {
      const Presolve known(problem, {}, Deadline(0, {}), *optimum + static_cast<std::int64_t>(random.below(3)));
      ASSERT_FALSE(known.is_infeasible()) << describe(problem);
      EXPECT_EQ(least_of_core(problem, known), optimum) << describe(problem);
    }
    num_decided += !presolve.is_infeasible() && presolve.core().num_nodes() == 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(num_decided, 100u);
}

TEST(PresolveTest, OnAndOffGiveTheSameOptimum) {
  for (std::uint64_t seed = 10000; seed < 10800; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    const PlanResult reduced = make_auto_search()->search(problem, {});
    const PlanResult plain =
        make_auto_search({.presolve = false, .is_exact = true, .has_bound = true})->search(problem, {});
    EXPECT_EQ(reduced.status, plain.status) << describe(problem);
    EXPECT_EQ(reduced.cost, plain.cost) << describe(problem);
    if (HasFailure()) return;
  }
}

TEST(PresolveTest, ProjectInvertsExpand) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    const Presolve presolve(problem, {}, Deadline(0, {}));
    if (presolve.is_infeasible()) continue;
    CoreChoice choice;
    for (std::size_t node = 0; node < presolve.core().num_nodes(); ++node) {
      choice.push_back(static_cast<std::uint32_t>(random.below(presolve.core().num_values(node))));
    }
    EXPECT_EQ(presolve.project(presolve.expand(choice)), choice) << describe(problem);
  }
}

TEST(PresolveTest, ProblemsOfRepeatedLayersAreReducedOnce) {
  // Every layer of a forward chain reduces to the same tables, so a hundred layers are proven without a search.
  const StrategyProblem problem =
      layered_problem({.layers = 96, .width = 8, .strategies = 24, .training = false, .limit_percent = 200});
  const PlanResult result = make_auto_search()->search(problem, {});
  EXPECT_EQ(result.status, PlanStatus::kOptimal);
  EXPECT_EQ(result.found_by, "presolve");
}

TEST(PresolveTest, GivesUpWithoutACertainAnswerWhenItIsStopped) {
  std::stop_source stop;
  stop.request_stop();
  const StrategyProblem problem = layered_problem({.layers = 1, .width = 8, .strategies = 4});
  const Presolve presolve(problem, {}, Deadline(0, stop.get_token()));
  EXPECT_TRUE(presolve.is_infeasible());
  EXPECT_FALSE(presolve.is_infeasibility_certain());
}

}  // namespace
}  // namespace shardplan
