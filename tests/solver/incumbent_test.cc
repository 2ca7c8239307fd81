#include "solver/incumbent.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shardplan {
namespace {

/// One node with four strategies: they cost 10, 20, 30 and 5; the last one does not fit.
StrategyProblem one_node() {
  StrategyProblem problem;
  problem.strategy_tables = {{{{10, 0}, {20, 0}, {30, 0}, {5, 0}}}};
  problem.usage_tables = {{{1, 1, 1, 2}}};
  problem.nodes = {{StrategyTableId(0), {{UsageTableId(0), 0, 1}}}};
  problem.memory_limits = {1};
  return problem;
}

Choice strategy(std::size_t index) {
  Choice choice;
  choice.strategy.push_back(StrategyId(index));
  return choice;
}

class IncumbentTest : public testing::Test {
 protected:
  StrategyProblem problem_ = one_node();
  SearchOptions options_;
  Deadline deadline_{0, {}};
};

TEST_F(IncumbentTest, KeepsTheCheapestFeasibleChoice) {
  Incumbent incumbent(problem_, options_, deadline_);
  EXPECT_FALSE(incumbent.offer(strategy(3), "too large"));
  EXPECT_FALSE(incumbent.cost());
  EXPECT_TRUE(incumbent.offer(strategy(1), "first"));
  EXPECT_FALSE(incumbent.offer(strategy(2), "more expensive"));
  EXPECT_FALSE(incumbent.offer(strategy(1), "equal"));
  EXPECT_TRUE(incumbent.offer(strategy(0), "best"));
  const PlanResult result = incumbent.result({});
  EXPECT_EQ(result.choice, strategy(0));
  EXPECT_EQ(result.cost, 10);
  EXPECT_EQ(result.found_by, "best");
  EXPECT_EQ(result.status, PlanStatus::kFeasible);
}

TEST_F(IncumbentTest, CostsAreTheObjectives) {
  options_.objective = {3, 1};
  Incumbent incumbent(problem_, options_, deadline_);
  incumbent.offer(strategy(0), "");
  EXPECT_EQ(incumbent.cost(), 30);
}

struct ResultCase {
  const char* name;
  std::optional<std::size_t> choice;
  std::int64_t bound;
  bool is_infeasible;
  std::optional<Limit> limit;
  PlanStatus status;
  std::int64_t expected_bound;
  std::optional<Limit> stopped_by;
};
const ResultCase kResultCases[] = {
    {"nothing_known", {}, 4, false, Limit::kWork, PlanStatus::kNoPlanFound, 4, Limit::kWork},
    {"own_end", {}, 4, false, {}, PlanStatus::kNoPlanFound, 4, {}},
    {"infeasible", {}, 0, true, Limit::kTime, PlanStatus::kInfeasible, 0, {}},
    {"above_the_bound", 0, 9, false, Limit::kTime, PlanStatus::kFeasible, 9, Limit::kTime},
    {"at_the_bound", 0, 10, false, Limit::kGap, PlanStatus::kOptimal, 10, {}},
    {"rounded_bound", 0, 11, false, {}, PlanStatus::kOptimal, 10, {}},
};

TEST_F(IncumbentTest, StatusBoundAndLimitAgree) {
  for (const ResultCase& item : kResultCases) {
    SCOPED_TRACE(item.name);
    Incumbent incumbent(problem_, options_, deadline_);
    if (item.choice) incumbent.offer(strategy(*item.choice), "");
    incumbent.raise_bound(item.bound);
    incumbent.raise_bound(item.bound - 1);  // a lower bound adds nothing
    if (item.is_infeasible) incumbent.set_infeasible();
    const PlanResult result = incumbent.result(item.limit);
    EXPECT_EQ(result.status, item.status);
    EXPECT_EQ(result.lower_bound, item.expected_bound);
    EXPECT_EQ(result.stopped_by, item.stopped_by);
    EXPECT_EQ(incumbent.is_proven(), item.status == PlanStatus::kOptimal || item.status == PlanStatus::kInfeasible);
  }
}

TEST_F(IncumbentTest, AnObstacleIsNamedIfItEndedTheSearchWithoutAnAnswer) {
  Incumbent incumbent(problem_, options_, deadline_);
  incumbent.set_obstacle("too large");
  EXPECT_EQ(incumbent.result({}).obstacle, "too large");
  EXPECT_EQ(incumbent.result(Limit::kTime).obstacle, "");
  incumbent.offer(strategy(0), "");
  EXPECT_EQ(incumbent.result({}).obstacle, "");
}

TEST_F(IncumbentTest, TheGapIsRelativeToTheBound) {
  options_.limits.gap = 0.25;
  Incumbent incumbent(problem_, options_, deadline_);
  EXPECT_FALSE(incumbent.is_within_gap());
  incumbent.offer(strategy(0), "");
  incumbent.raise_bound(7);
  EXPECT_FALSE(incumbent.is_within_gap());  // 3 / 7
  incumbent.raise_bound(8);
  EXPECT_TRUE(incumbent.is_within_gap());  // 2 / 8
}

TEST_F(IncumbentTest, ReportsWhatIsKnown) {
  std::vector<std::pair<std::optional<std::int64_t>, std::int64_t>> seen;
  options_.limits.progress = [&](const SearchProgress& progress) {
    seen.emplace_back(progress.cost, progress.lower_bound);
  };
  Incumbent incumbent(problem_, options_, deadline_);
  incumbent.report();
  incumbent.offer(strategy(1), "");
  incumbent.raise_bound(3);
  incumbent.report();
  EXPECT_EQ(seen, (decltype(seen){{std::nullopt, 0}, {20, 3}}));
}

TEST_F(IncumbentTest, TakesNoBrokenProblem) {
  problem_.memory_limits.clear();
  EXPECT_THROW(Incumbent(problem_, options_, deadline_), InputError);
}

}  // namespace
}  // namespace shardplan
