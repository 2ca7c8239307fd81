#include "planner/plan.h"

#include <gtest/gtest.h>

#include "tests/support/operations.h"

namespace shardplan {
namespace {

/// A plan of 100 bytes that holds no more than fits.
Plan plan_with(Level level, const StepTime& time, Bytes peak = 50) {
  Plan plan;
  plan.options.level = level;
  plan.strategies.push_back({});
  plan.time = time;
  plan.usable = 100;
  plan.memory.peak = peak;
  plan.peak_in_sequence = peak;
  return plan;
}

struct BetterCase {
  const char* why;
  Level level;
  StepTime time, than;
  Bytes peak, than_peak;
  bool is_better;
};
const BetterCase kBetter[] = {
    {"less communication", Level::kRatio, {90, 10, 10, 0}, {50, 20, 20, 0}, 50, 50, true},
    {"as much, less computation", Level::kRatio, {40, 20, 20, 0}, {50, 20, 20, 0}, 50, 50, true},
    {"the same", Level::kRatio, {50, 20, 20, 0}, {50, 20, 20, 0}, 50, 50, false},
    {"bought with repeated work", Level::kRatio, {90, 10, 10, 5}, {50, 20, 20, 0}, 50, 50, false},
    {"a shorter step with more communication", Level::kRatio, {10, 30, 30, 0}, {50, 20, 20, 0}, 50, 50, false},
    {"a lower peak", Level::kMemory, {90, 90, 90, 0}, {10, 10, 10, 0}, 40, 50, true},
    {"within the slack of a tenth", Level::kMemory, {90, 90, 90, 0}, {10, 10, 10, 0}, 46, 50, false},
    {"no higher, and shorter", Level::kMemory, {9, 10, 10, 0}, {10, 10, 10, 0}, 50, 50, true},
    {"higher, and shorter", Level::kMemory, {1, 1, 1, 0}, {10, 10, 10, 0}, 51, 50, false},
    {"a shorter sum", Level::kSpeed, {10, 29, 29, 0}, {20, 20, 20, 0}, 90, 50, true},
    {"an equal sum", Level::kSpeed, {10, 30, 30, 0}, {20, 20, 20, 0}, 50, 50, false},
    {"does not fit", Level::kSpeed, {1, 1, 1, 0}, {20, 20, 20, 0}, 101, 50, false},
    {"fits, the other does not", Level::kSpeed, {90, 90, 90, 0}, {20, 20, 20, 0}, 100, 101, true},
};
TEST(PlanTest, IsBetterInWhatTheLevelMakesLeast) {
  for (const BetterCase& c : kBetter) {
    const Plan plan = plan_with(c.level, c.time, c.peak);
    Plan than = plan_with(c.level, c.than, c.than_peak);
    than.options.memory_slack = 0.1;
    EXPECT_EQ(is_better(plan, than), c.is_better) << c.why;
    EXPECT_FALSE(is_better(plan, than) && is_better(than, plan)) << c.why;
  }
}

TEST(PlanTest, OverlappedPlansAreComparedByTheStepThatTheyTake) {
  Plan hides = plan_with(Level::kSpeed, {40, 50, 5, 0});   // 90 without overlap, a step of 45
  Plan shows = plan_with(Level::kSpeed, {40, 40, 40, 0});  // 80 and 80
  EXPECT_FALSE(is_better(hides, shows));
  hides.is_overlapped = true;
  EXPECT_TRUE(is_better(hides, shows)) << "in sequence the sum is the step";
  EXPECT_FALSE(is_better(shows, hides));
  shows.is_overlapped = true;
  EXPECT_TRUE(is_better(hides, shows));
  EXPECT_FALSE(is_better(shows, hides));
}

TEST(PlanTest, WhatWasNotFoundIsNeverBetter) {
  Plan none = plan_with(Level::kSpeed, {1, 1, 1, 0});
  none.strategies = {};
  const Plan some = plan_with(Level::kSpeed, {20, 20, 20, 0});
  EXPECT_FALSE(is_better(none, some));
  EXPECT_TRUE(is_better(some, none));
}

TEST(PlanTest, TimesInSequenceAddUp) {
  ParallelProgram program;
  for (const auto& [kind, time] : {std::pair{InstructionKind::kOperator, 7},
                                   {InstructionKind::kCollective, 5},
                                   {InstructionKind::kOperator, 11}}) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.time = time;
    if (kind == InstructionKind::kOperator) {
      instruction.operation = std::make_shared<const Operation>(operation_of("ReLU", {}, {{1}}));
      instruction.strategy.edit().factors.push_back({});
    }
    instruction.step.edit().kind = CollectiveKind::kAllReduce;
    program.instructions.push_back(std::move(instruction));
  }
  const StepTime time = time_in_sequence(program);
  EXPECT_EQ(time.computation, 18);
  EXPECT_EQ(time.communication, 5);
  EXPECT_EQ(time.step(), 23);
  EXPECT_EQ(time.additive(), 23);
  Plan plan;
  plan.program = program;
  using Span = OverlappedTimeline::Span;
  EXPECT_EQ(plan.spans(), (std::vector<Span>{{0, 7}, {7, 12}, {12, 23}}));
}

}  // namespace
}  // namespace shardplan
