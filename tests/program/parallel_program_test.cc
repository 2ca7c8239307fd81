#include "program/parallel_program.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(ParallelProgramTest, TheLoopIsWhatRunsWithEveryMicroBatch) {
  const auto loop = [](std::int64_t micro_batches, const std::vector<std::int64_t>& runs) {
    ParallelProgram program;
    program.micro_batches = micro_batches;
    for (const std::int64_t count : runs) {
      Instruction instruction;
      instruction.time = 7;
      instruction.runs = count;
      EXPECT_EQ(instruction.time_of_step(), 7 * count);
      program.instructions.push_back(std::move(instruction));
    }
    return program.num_in_micro_batch();
  };
  EXPECT_EQ(loop(1, {1, 1, 1}), 0u);
  EXPECT_EQ(loop(4, {4, 4, 1}), 2u);
  EXPECT_EQ(loop(4, {4, 4, 4}), 3u);
  EXPECT_EQ(loop(4, {1, 1}), 0u);
  EXPECT_EQ(loop(4, {}), 0u);
}

}  // namespace
}  // namespace shardplan
