#include "planner/overlap/part_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "model/read_model.h"
#include "planner/overlap/plan_pool.h"
#include "solver/searches/search_list.h"
#include "tests/fuzz/random_model.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// Its kernels take so long that it pays to communicate.
Cluster slow_cluster() {
  return read_cluster_text(
      "shardplan: 1\ncluster: slow\ndevice:\n  name: d\n  memory: {capacity: 1 GiB, bandwidth: 1 GB/s}\n"
      "  flops: {f32: 1 GFLOP/s, f64: 1 GFLOP/s, f16: 1 GFLOP/s, bf16: 1 GFLOP/s, i8: 1 GFLOP/s}\n  start: 1 ns\n"
      "levels:\n  - {name: inner, count: 4, latency: 1 ns, bandwidth: 10 GB/s}\n",
      "slow.yaml");
}

std::optional<Choice> cheapest_choice(const StrategyProblem& problem) {
  return make_search(kDefaultSearch)->search(problem, SearchOptions{}).choice;
}

// From the best choice of all no part leads to a cheaper one, and each that must communicate less somewhere leads away
// from it; from a random choice parts lead to cheaper ones.
TEST(PartSearchTest, LeavesTheBestChoiceAndImprovesOthers) {
  int away = 0, cheaper = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    Random random(seed);
    const std::string text = random_model(random, 2 + random.below(6));
    SCOPED_TRACE(text);
    const PlannedModel planned(read_model_text(text, "m.yaml"), slow_cluster());
    const StrategyProblem& problem = planned.problem.problem;
    const SearchedModel model{planned.graph, planned.versions, planned.problem, planned.costs->mesh(), std::nullopt};
    const PartSearch search(model, {});
    const std::optional<Choice> best = cheapest_choice(problem);
    ASSERT_TRUE(best);
    const auto cost = [&](const Choice& choice) { return evaluate(problem, choice).value({}); };
    const std::vector<Choice> around_best = search.around(*best, problem);
    for (const Choice& choice : around_best) {
      EXPECT_TRUE(evaluate(problem, choice).feasible);
      EXPECT_NE(choice, *best);
      EXPECT_EQ(std::count(around_best.begin(), around_best.end(), choice), 1);
      EXPECT_GE(cost(choice), cost(*best));
    }
    if (evaluate(problem, *best).cost.communication > 0) away += around_best.empty() ? 0 : 1;
    const Choice other = planned.random_choice(random);
    if (!evaluate(problem, other).feasible || cost(other) == cost(*best)) continue;
    Choice now = other;
    for (int turn = 0; turn < 4; ++turn) {
      for (Choice& choice : search.around(now, problem)) {
        if (cost(choice) < cost(now)) now = std::move(choice);
      }
    }
    cheaper += cost(now) < cost(other) ? 1 : 0;
  }
  EXPECT_GT(away, 4);
  EXPECT_GT(cheaper, 6);
}

// From random choices, with a limit of exactly what these hold, and of a byte less.
TEST(PartSearchTest, StaysWithinTheMemoryLimit) {
  int found = 0, bound = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    const std::string text = random_model(random, 2 + random.below(6));
    SCOPED_TRACE(text);
    PlannedModel planned(read_model_text(text, "m.yaml"), slow_cluster());
    StrategyProblem& problem = planned.problem.problem;
    const Choice known = planned.random_choice(random);
    const Evaluation evaluation = evaluate(problem, known);
    if (!evaluation.feasible || evaluation.peak_bytes == 0) continue;
    const SearchedModel model{planned.graph, planned.versions, planned.problem, planned.costs->mesh(), std::nullopt};
    const auto largest = [&] {
      Bytes most = 0;
      for (const Choice& choice : PartSearch(model, {}).around(known, problem)) {
        most = std::max(most, evaluate(problem, choice).peak_bytes);
      }
      return most;
    };
    const Bytes without_limit = largest();
    problem.memory_limits.assign(problem.memory_limits.size(), evaluation.peak_bytes);
    EXPECT_LE(largest(), evaluation.peak_bytes);
    found += largest() > 0 ? 1 : 0;
    bound += without_limit > evaluation.peak_bytes ? 1 : 0;
    problem.memory_limits.assign(problem.memory_limits.size(), evaluation.peak_bytes - 1);
    EXPECT_EQ(largest(), 0);
  }
  EXPECT_GT(found, 3);
  EXPECT_GT(bound, 1);
}

Plan plan_of(Picoseconds step) {
  Plan plan;
  plan.is_overlapped = true;
  plan.time.computation = step;
  return plan;
}

TEST(PlanPoolTest, PlansTakeTurnsAndThoseLookedAroundWait) {
  PlanPool pool(2);
  for (const Picoseconds step : {1'004'000, 1'000'000, 1'100'000}) pool.add(plan_of(step), {});
  const auto look = [&] {
    PlanPool::Member* const member = pool.next();
    if (member == nullptr) return Picoseconds{0};
    ++member->looked;
    return member->plan.time.step();
  };
  // 1,100,000 is left: it takes more than 5 % longer than the shortest.
  for (const Picoseconds expected : {1'000'000, 1'000'000, 1'004'000, 1'004'000, 0}) EXPECT_EQ(look(), expected);
  pool.add(plan_of(1'002'500), {});
  EXPECT_EQ(look(), 1'002'500);
}

TEST(PlanPoolTest, KeepsTwoOfThePlansThatTakeTheSameTime) {
  PlanPool pool(1);
  for (int i = 0; i < 5; ++i) pool.add(plan_of(1'000'000 + i), {});
  int plans = 0;
  for (PlanPool::Member* member = pool.next(); member != nullptr; member = pool.next(), ++plans) ++member->looked;
  EXPECT_EQ(plans, 2);
}

}  // namespace
}  // namespace shardplan
