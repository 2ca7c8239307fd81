#include "planner/search/level_search.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "solver/searches/search_list.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

// Level 0 minimises communication, then computation. With costs of a few tens this equals a weighted sum in which
// communication counts 1000 times, and all choices can be tried.
TEST(LevelSearchTest, RatioHasTheLeastCommunicationThenTheLeastComputation) {
  Random random(5);
  for (int i = 0; i < 60; ++i) {
    const StrategyProblem problem = random_problem(random, random_options(random));
    LevelOptions first;  // of several searches, as those of a planner
    first.limits.exact_work = 8'000'000'000;
    first.limits.give_up_work = 500'000'000;
    const auto best = brute_force(problem, {1, 1000});
    for (const LevelOptions& options : {LevelOptions(), first}) {
      const LevelResult result = search_level(problem, *make_search("auto"), options);
      ASSERT_EQ(result.choice.has_value(), best.has_value()) << describe(problem);
      if (!best) continue;
      const Evaluation evaluation = evaluate(problem, *result.choice);
      EXPECT_TRUE(evaluation.feasible);
      EXPECT_EQ(evaluation.value({1, 1000}), *best) << describe(problem);
      EXPECT_EQ(result.status, PlanStatus::kOptimal);
      EXPECT_EQ(result.bound, (LevelValue{Level::kRatio, evaluation.cost.communication})) << describe(problem);
    }
  }
}

/// Finds the first choice, of sums in the first `most` searches, and proves nothing of a sum.
class OpenSums : public Search {
 public:
  explicit OpenSums(bool proves_communication, std::size_t most = 100)
      : proves_communication_(proves_communication), most_(most) {}
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    const std::lock_guard lock(mutex_);
    const bool is_sum = options.objective.computation_weight > 0;
    (is_sum ? asked_of_sum : asked_of_communication).push_back(options);
    PlanResult result;
    if (is_sum && asked_of_sum.size() > most_) return result;
    result.status = PlanStatus::kFeasible;
    result.choice = Choice{IdVector<NodeId, StrategyId>(problem.nodes.size(), StrategyId(0))};
    result.cost = evaluate(problem, *result.choice).value(options.objective);
    if (proves_communication_ && !is_sum) result.lower_bound = result.cost;
    return result;
  }
  mutable std::vector<SearchOptions> asked_of_sum, asked_of_communication;

 private:
  mutable std::mutex mutex_;  // the two are searched side by side
  bool proves_communication_;
  std::size_t most_;
};

// Where communication alone is soon proven, no time goes into the sum; else nothing of what little work found is used.
TEST(LevelSearchTest, ASumThatStaysOpenIsLeftWhereCommunicationIsProven) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{10, 7}, {30, 8}}}};
  problem.nodes.push_back({StrategyTableId(0), {}});
  LevelOptions options;
  options.limits.exact_work = 8'000'000'000;
  options.limits.give_up_work = 500'000'000;
  const OpenSums proves(true), does_not(false);
  const LevelResult proven = search_level(problem, proves, options);
  EXPECT_EQ(proven.status, PlanStatus::kOptimal);
  EXPECT_EQ(proven.bound, (LevelValue{Level::kRatio, 7}));
  ASSERT_EQ(proves.asked_of_sum.size(), 1u);
  ASSERT_EQ(proves.asked_of_communication.size(), 2u);  // the first for a weight
  for (const auto* const all : {&proves.asked_of_sum, &proves.asked_of_communication}) {
    for (const SearchOptions& asked : *all) {
      EXPECT_LT(asked.limits.exact_work, options.limits.exact_work / 10);
      EXPECT_GT(asked.limits.work, 0u);
    }
  }
  EXPECT_EQ(search_level(problem, does_not, options).status, PlanStatus::kFeasible);
  ASSERT_EQ(does_not.asked_of_sum.size(), 2u);
  EXPECT_FALSE(does_not.asked_of_sum[1].start);
  EXPECT_EQ(does_not.asked_of_sum[1].limits.exact_work, options.limits.exact_work / 2);
  EXPECT_EQ(does_not.asked_of_sum[1].limits.give_up_work, options.limits.give_up_work);
  ASSERT_EQ(does_not.asked_of_communication.size(), 3u);
  EXPECT_FALSE(does_not.asked_of_communication[2].start);
  EXPECT_EQ(does_not.asked_of_communication[2].limits.exact_work, options.limits.exact_work);
  // Where the full search ends without a choice, as when it is interrupted, the answer is what was found before.
  const OpenSums interrupted(false, 1);
  EXPECT_TRUE(search_level(problem, interrupted, options).choice);
  options.limits.give_up_work = 0;  // a later search of a planner
  const OpenSums later(true);
  search_level(problem, later, options);
  EXPECT_EQ(later.asked_of_sum.front().limits.exact_work, options.limits.exact_work / 2);
}

// If memory hardly binds, or cannot bind, the answer is that of the search with all limits.
TEST(LevelSearchTest, FastestIsTheLeastSumUnderTheLimits) {
  Random random(6);
  for (int i = 0; i < 60; ++i) {
    RandomProblemOptions options = random_options(random);
    options.limit_percent = 40 + 20 * (i % 5);
    const StrategyProblem problem = random_problem(random, options);
    LevelOptions level;
    level.level = Level::kSpeed;
    const LevelResult result = search_level(problem, *make_search("auto"), level);
    const auto best = brute_force(problem);
    ASSERT_EQ(result.choice.has_value(), best.has_value()) << describe(problem);
    if (!best) continue;
    EXPECT_EQ(evaluate(problem, *result.choice).value({}), *best) << describe(problem);
    EXPECT_EQ(result.bound, (LevelValue{Level::kSpeed, *best})) << describe(problem);
  }
}

/// Knows a bound and no choice.
class FruitlessSearch : public Search {
 public:
  PlanResult search(const StrategyProblem&, const SearchOptions&) const override {
    PlanResult result;
    result.stopped_by = Limit::kWork;
    result.lower_bound = (std::int64_t{1} << 16) * 40 + 30;
    return result;
  }
};

/// A slow search that finds what "auto" finds, with a useless bound.
class SlowSearch : public Search {
 public:
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    seconds_.push_back(options.limits.seconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    SearchOptions without_limit = options;
    without_limit.limits.seconds = 0;
    PlanResult result = make_search("auto")->search(problem, without_limit);
    result.lower_bound = 0;
    return result;
  }
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  mutable std::vector<double> seconds_;
};

// All searches of a level share its limit. Each takes from what is left for the next, down to a moment: 0 would mean no
// limit.
TEST(LevelSearchTest, ATimeLimitIsForAllSearchesOfALevel) {
  Random random(8);
  const StrategyProblem problem = random_problem(random, {});
  for (const Level level : {Level::kRatio, Level::kMemory}) {
    LevelOptions options;
    options.level = level;
    options.limits.seconds = 0.03;
    const SlowSearch search;
    ASSERT_TRUE(search_level(problem, search, options).choice);
    ASSERT_GE(search.seconds().size(), 2u);
    EXPECT_GT(search.seconds().back(), 0);
    EXPECT_LE(search.seconds().back(), 0.01);
  }
}

// The weighted sum's bound gives a bound on communication whether or not a plan was found: 40, if all 30 of computation
// are subtracted.
TEST(LevelSearchTest, RatioWithoutAPlanHasABoundOnCommunication) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{10, 1}, {30, 0}}}};
  problem.nodes.push_back({StrategyTableId(0), {}});
  const LevelResult result = search_level(problem, FruitlessSearch(), {});
  EXPECT_FALSE(result.choice);
  EXPECT_EQ(result.bound, (LevelValue{Level::kRatio, 40}));
}

// Five seconds of communication, times the usual weight, are more than a cost may be. A start says so; without one the
// search finds out.
TEST(LevelSearchTest, RatioOfPlansThatCommunicateForLong) {
  const std::int64_t second = 1'000'000'000'000;
  StrategyProblem problem;
  problem.strategy_tables = {{{{0, 5 * second}, {0, 0}}}, {{{0, 0}, {0, 4 * second}}}};
  problem.matrices = {{2, 2, {0, kForbidden, kForbidden, 0}}};
  problem.nodes = {{StrategyTableId(0), {}}, {StrategyTableId(1), {}}, {StrategyTableId(1), {}}};
  for (std::size_t i = 1; i < 3; ++i) problem.edges.push_back({NodeId(0), NodeId(i), MatrixId(0)});
  Choice second_best;
  second_best.strategy.resize(3, StrategyId(1));
  for (const std::optional<Choice>& start : {std::optional<Choice>(), std::optional(second_best)}) {
    LevelOptions options;
    options.start = start;
    const LevelResult result = search_level(problem, *make_search("auto"), options);
    ASSERT_TRUE(result.choice);
    EXPECT_EQ(evaluate(problem, *result.choice).cost.communication, 5 * second);
    EXPECT_EQ(result.bound, (LevelValue{Level::kRatio, 5 * second}));
    EXPECT_EQ(result.status, PlanStatus::kOptimal);
  }
}

/// Returns the given answers and records the requests.
class NotedSearch : public Search {
 public:
  struct Answer {
    std::int64_t cost = 0, bound = 0;
  };
  NotedSearch(Answer of_sum, Answer of_communication) : of_sum_(of_sum), of_communication_(of_communication) {}
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    const bool is_sum = options.objective.computation_weight > 0;
    {
      const std::lock_guard lock(mutex_);
      (is_sum ? asked_of_sum : asked_of_communication).push_back(options);
    }
    PlanResult result;
    result.status = PlanStatus::kFeasible;
    result.choice = Choice{IdVector<NodeId, StrategyId>(problem.nodes.size(), StrategyId(0))};
    result.cost = (is_sum ? of_sum_ : of_communication_).cost;
    result.lower_bound = (is_sum ? of_sum_ : of_communication_).bound;
    return result;
  }
  mutable std::vector<SearchOptions> asked_of_sum, asked_of_communication;

 private:
  mutable std::mutex mutex_;  // the two are searched side by side
  Answer of_sum_, of_communication_;
};

// Whether the least communication of a small problem is waited for depends on how the search of the weighted sum ended:
// if its proof took a moment, another one is affordable; if it ended at a sufficient gap, the second would end there
// too.
TEST(LevelSearchTest, RatioHasNoSecondSearchWhereTheFirstTookLongAndWillDo) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{100, 1'000'000}}}};
  problem.nodes.push_back({StrategyTableId(0), {}});
  const std::int64_t cost = (std::int64_t{1} << 16) * 1'000'000 + 100;
  LevelOptions options;
  options.limits.early_gap = 1e-4;
  options.limits.loose_gap = 1e-2;
  options.limits.exact_work = 1000;
  const auto bound = [&](double gap) {
    const NotedSearch search({cost, cost - static_cast<std::int64_t>(gap * static_cast<double>(cost))},
                             {1'000'000, 999'999});
    std::vector<Choice> first_answers;
    options.first_answer = [&](const Choice& choice) { first_answers.push_back(choice); };
    const LevelResult result = search_level(problem, search, options);
    EXPECT_EQ(first_answers.size(), 1u);
    EXPECT_EQ(search.asked_of_sum.size(), 1u);
    // All computation is subtracted from its bound.
    EXPECT_LT(search.asked_of_sum[0].limits.loose_gap, options.limits.loose_gap);
    EXPECT_LT(search.asked_of_sum[0].limits.exact_work, options.limits.exact_work);
    // Before it, for a moment.
    EXPECT_LT(search.asked_of_communication[0].limits.work, 10'000'000u);
    return result.bound.amount;
  };
  EXPECT_EQ(bound(5e-5), 999'999);
  EXPECT_LT(bound(5e-3), 995'001);
  EXPECT_EQ(bound(5e-2), 999'999);
}

TEST(LevelSearchTest, RatioOfAKnownBoundSearchesCommunicationFromItsChoice) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{100, 1'000'000}}}};
  problem.nodes.push_back({StrategyTableId(0), {}});
  LevelOptions options;
  options.known_bound = 10;
  options.limits.exact_work = 1000;
  const NotedSearch search({(std::int64_t{1} << 16) * 1'000'000 + 100, 0}, {1'000'000, 999'999});
  EXPECT_EQ(search_level(problem, search, options).bound.amount, 999'999);
  EXPECT_EQ(search.asked_of_sum[0].limits.exact_work, options.limits.exact_work);
  EXPECT_TRUE(search.asked_of_communication.back().start.has_value());
}

// A bound on memory alone is that of the level, but takes no time for a fast plan.
TEST(LevelSearchTest, BoundOnMemoryIsThatOfTheLevel) {
  Random random(7);
  LevelOptions level;
  level.level = Level::kMemory;
  for (int i = 0; i < 30; ++i) {
    const StrategyProblem problem = random_problem(random, random_options(random));
    const LevelResult result = search_level(problem, *make_search("auto"), level);
    EXPECT_EQ(level_bound(problem, level), result.bound) << describe(problem);
  }
}

}  // namespace
}  // namespace shardplan
