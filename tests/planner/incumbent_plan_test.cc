#include "planner/overlap/incumbent_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace shardplan {
namespace {

constexpr Bytes kFullMemory = 1000;

/// Plans are distinguished by the number of their strategies.
Plan plan_of(std::size_t number, Picoseconds step, Bytes peak) {
  Plan plan;
  plan.options.level = Level::kSpeed;
  plan.is_overlapped = true;
  plan.usable = kFullMemory;
  plan.memory.peak = peak;
  plan.time.computation = step;
  plan.strategies.resize(number);
  return plan;
}
std::size_t number_of(const Plan& plan) { return plan.strategies.size(); }

Decisions decisions_of(std::size_t number) {
  Decisions decisions;
  decisions.strategies.resize(number);
  return decisions;
}

class IncumbentPlanTest : public testing::Test {
 protected:
  IncumbentPlan incumbent(Plan plan) { return IncumbentPlan(std::move(plan), schedule_, deadline_); }
  void can_be(std::size_t number, Picoseconds step, Bytes peak) { plans_[number] = plan_of(number, step, peak); }

  std::map<std::size_t, Plan> plans_;
  std::map<std::size_t, Plan> refined_;
  IncumbentPlan::Schedule schedule_ = [this](const Decisions& decisions, const OrderEffort& effort) {
    const std::size_t number = decisions.strategies.size();
    return effort.is_final && refined_.contains(number) ? refined_.at(number) : plans_.at(number);
  };
  Deadline deadline_{0, {}};
};

TEST_F(IncumbentPlanTest, TakesTheShortestPlanThatFits) {
  can_be(2, 90'000, 100);
  can_be(3, 80'000, kFullMemory + 1);
  can_be(4, 85'000, 100);
  IncumbentPlan plan = incumbent(plan_of(1, 100'000, 100));
  plan.try_all({decisions_of(2), decisions_of(3), decisions_of(4)}, std::nullopt);
  EXPECT_EQ(number_of(plan.plan()), 4u);
  EXPECT_EQ(plan.step(), 85'000);
  EXPECT_EQ(plan.ordered(), 3);
  EXPECT_EQ(plan.taken(), 2);
}

TEST_F(IncumbentPlanTest, HoldsMoreMemoryOnlyForAShorterStep) {
  can_be(2, 99'600, 101);  // 0.4 % shorter
  IncumbentPlan plan = incumbent(plan_of(1, 100'000, 100));
  plan.try_all({decisions_of(2)}, std::nullopt);
  EXPECT_EQ(number_of(plan.plan()), 1u);
  can_be(2, 99'400, 101);
  plan.try_all({decisions_of(2)}, std::nullopt);
  EXPECT_EQ(number_of(plan.plan()), 2u);
  can_be(3, 99'399, 101);
  plan.try_all({decisions_of(3)}, std::nullopt);
  EXPECT_EQ(number_of(plan.plan()), 3u);
}

TEST_F(IncumbentPlanTest, WhatIsScheduledBesideCountsFromFinishOn) {
  can_be(2, 90'000, 100);
  IncumbentPlan plan = incumbent(plan_of(1, 100'000, 100));
  plan.try_beside(decisions_of(2));
  EXPECT_EQ(number_of(plan.plan()), 1u);
  EXPECT_EQ(number_of(plan.finished()), 2u);
}

TEST_F(IncumbentPlanTest, ALeanerPlanMayTakeHardlyLonger) {
  can_be(2, 100'400, 91);  // hardly leaner
  can_be(3, 100'400, 80);
  can_be(4, 100'600, 50);  // too long
  IncumbentPlan plan = incumbent(plan_of(1, 100'000, 100));
  plan.try_leaner({decisions_of(2)});
  EXPECT_EQ(number_of(plan.plan()), 1u);
  plan.try_leaner({decisions_of(3), decisions_of(4)});
  EXPECT_EQ(number_of(plan.plan()), 3u);
}

TEST_F(IncumbentPlanTest, ThePlanBeforeIsRefinedIfItTookHardlyLonger) {
  can_be(1, 100'000, 100);
  can_be(2, 99'800, 100);
  refined_[1] = plan_of(1, 98'000, 100);
  {
    IncumbentPlan plan = incumbent(plan_of(1, 100'000, 100));
    plan.try_all({decisions_of(2)}, std::nullopt);
    plan.refine_order();
    EXPECT_EQ(number_of(plan.plan()), 1u);
    EXPECT_EQ(plan.step(), 98'000);
  }
  can_be(2, 99'000, 100);  // 1 % shorter: the plan before is dropped
  IncumbentPlan plan = incumbent(plan_of(1, 100'000, 100));
  plan.try_all({decisions_of(2)}, std::nullopt);
  plan.refine_order();
  EXPECT_EQ(number_of(plan.plan()), 2u);
}

TEST_F(IncumbentPlanTest, TheFinalOrderMayTakeHardlyLongerIfItIsLeaner) {
  can_be(1, 100'000, 100);
  const auto refined_to = [&](Picoseconds step, Bytes peak) {
    refined_[1] = plan_of(1, step, peak);
    IncumbentPlan plan = incumbent(plan_of(1, 100'000, 100));
    plan.refine_order();
    return std::pair(plan.step(), plan.plan().memory.peak);
  };
  EXPECT_EQ(refined_to(100'400, 80), (std::pair<Picoseconds, Bytes>(100'400, 80)));
  EXPECT_EQ(refined_to(100'400, 95), (std::pair<Picoseconds, Bytes>(100'000, 100)));
  EXPECT_EQ(refined_to(100'600, 50), (std::pair<Picoseconds, Bytes>(100'000, 100)));
}

TEST_F(IncumbentPlanTest, SchedulesNothingAfterTheDeadline) {
  std::stop_source stop;
  stop.request_stop();
  deadline_ = Deadline(0, stop.get_token());
  can_be(2, 90'000, 100);
  IncumbentPlan plan = incumbent(plan_of(1, 100'000, 100));
  plan.try_all({decisions_of(2)}, std::nullopt);
  EXPECT_EQ(number_of(plan.plan()), 1u);
  EXPECT_EQ(plan.ordered(), 0);
}

}  // namespace
}  // namespace shardplan
