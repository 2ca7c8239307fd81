#include "program/timeline.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

/// A kernel of 5, an all_gather of 3 and a kernel of 2 with every micro-batch; an all_reduce of 7 and an update of 1
/// once per step.
ParallelProgram program(std::int64_t micro_batches) {
  ParallelProgram result;
  result.micro_batches = micro_batches;
  const auto add = [&](InstructionKind kind, Picoseconds time, Pass pass, bool in_loop) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.time = time;
    instruction.pass = pass;
    instruction.runs = in_loop ? micro_batches : 1;
    result.instructions.push_back(instruction);
  };
  add(InstructionKind::kOperator, 5, Pass::kForward, true);
  add(InstructionKind::kCollective, 3, Pass::kForward, true);
  add(InstructionKind::kOperator, 2, Pass::kBackward, true);
  add(InstructionKind::kCollective, 7, Pass::kBackward, false);
  add(InstructionKind::kOperator, 1, Pass::kUpdate, false);
  return result;
}

TEST(TimelineTest, InstructionsRunOneAfterTheOther) {
  const Timeline times = timeline(program(1));
  EXPECT_EQ(times.starts, (std::vector<Picoseconds>{0, 5, 8, 10, 17}));
  EXPECT_EQ(times.end, 18);
  EXPECT_EQ(times.computation, 8);
  EXPECT_EQ(times.communication, 10);
  EXPECT_EQ(times.exposed, 10);
}

TEST(TimelineTest, ABucketCommunicatesOnce) {
  ParallelProgram joined = program(1);
  EXPECT_EQ(joined_communication(joined), 10);
  joined.buckets.resize(1);
  joined.buckets[0].time = 8;
  joined.instructions[1].fusion = joined.instructions[3].fusion = 1;
  EXPECT_EQ(joined_communication(joined), 8);
  EXPECT_EQ(timeline(joined).communication, 10) << "each alone";
  joined = program(4);
  EXPECT_EQ(joined_communication(joined), 4 * 3 + 7);
}

TEST(TimelineTest, WhatIsBehindTheLoopStartsAfterAllMicroBatches) {
  const Timeline times = timeline(program(4));
  EXPECT_EQ(times.starts, (std::vector<Picoseconds>{0, 5, 8, 40, 47}));  // 40 = 4 x (5 + 3 + 2)
  EXPECT_EQ(times.end, 48);
  EXPECT_EQ(times.computation, 4 * 7 + 1);
  EXPECT_EQ(times.communication, 4 * 3 + 7);
  EXPECT_EQ(times.exposed, times.end - times.computation);
}

TEST(TimelineTest, StagesAddUpToTheStep) {
  const ParallelProgram tested = program(4);
  EXPECT_EQ(pass_times(tested, Pass::kForward).computation, 20);
  EXPECT_EQ(pass_times(tested, Pass::kForward).communication, 12);
  EXPECT_EQ(pass_times(tested, Pass::kBackward).computation, 8);
  EXPECT_EQ(pass_times(tested, Pass::kBackward).communication, 7);
  EXPECT_EQ(pass_times(tested, Pass::kUpdate).computation, 1);
  EXPECT_EQ(pass_times(tested, Pass::kUpdate).communication, 0);
}

TEST(TimelineTest, AnEmptyProgramTakesNoTime) { EXPECT_EQ(timeline(ParallelProgram()).end, 0); }

}  // namespace
}  // namespace shardplan
