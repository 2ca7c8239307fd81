#include "program/loop_order.h"

#include <gtest/gtest.h>

#include "program/worker_timeline.h"
#include "tests/support/worker_draft.h"

namespace shardplan {
namespace {

/// Two workers, each with a kernel of a forward and a backward pass: 0 and 1 forward, 1 and 0 backward.
ParallelProgram two_stages(std::int64_t runs) {
  WorkerDraft draft(2, runs);
  const ValueId a = draft.kernel(0, 10);
  const ValueId forward = draft.send(1, 1, a);
  const ValueId b = draft.kernel(1, 10, {forward});
  const ValueId back = draft.kernel(1, 10, {b});
  const ValueId backward = draft.send(0, 1, back);
  draft.kernel(0, 10, {backward});
  return draft.program;
}

std::vector<std::pair<std::size_t, std::int64_t>> walked(const ParallelProgram& program) {
  std::vector<std::pair<std::size_t, std::int64_t>> turns;
  for (LoopWalk walk(program); !walk.is_done(); walk.next()) turns.emplace_back(walk.instruction(), walk.run());
  return turns;
}

TEST(LoopOrderTest, WithoutAnOrderOneRunFollowsTheOther) {
  ParallelProgram program = two_stages(3);
  std::vector<std::pair<std::size_t, std::int64_t>> expected;
  for (std::int64_t run = 0; run < 3; ++run) {
    for (std::size_t i = 0; i < 6; ++i) expected.emplace_back(i, run);
  }
  EXPECT_EQ(walked(program), expected);
  program.micro_batches = 1;
  EXPECT_TRUE(walked(program).empty()) << "no loop";
}

// Alternating, the two workers wait for each other: 42 per run. With two runs in flight the first worker begins the
// next one while the second does its 20, and 1F1B of four runs takes less than three runs did.
TEST(LoopOrderTest, OverlappedRunsAreShorter) {
  ParallelProgram program = two_stages(4);
  EXPECT_EQ(worker_timeline(program).end, 4 * 42);
  const std::vector<int> in_flight = {2, 1};
  program.loop_order = overlapped_runs(program, in_flight);
  EXPECT_EQ(check_loop_order(program), "");
  EXPECT_EQ(walked(program).size(), 4u * 6u);
  const Picoseconds end = worker_timeline(program).end;
  EXPECT_LT(end, 3 * 42);
  EXPECT_GE(end, least_step(program));
  EXPECT_TRUE(overlapped_runs(program, std::vector<int>{1, 1}).turns.empty()) << "one run after the other";
}

TEST(LoopOrderTest, TriesAreTheStagesAndTheSameForAll) {
  const std::vector<std::vector<int>> tries = runs_in_flight_to_try(two_stages(8));
  ASSERT_FALSE(tries.empty());
  EXPECT_EQ(tries[0], (std::vector<int>{2, 1}));
  for (const std::vector<int>& one : tries) {
    EXPECT_EQ(one.size(), 2u);
    for (const int runs : one) EXPECT_TRUE(runs >= 1 && runs <= 4);
  }
}

// Any order with one mistake in it is detected.
TEST(LoopOrderTest, WrongOrdersAreFound) {
  ParallelProgram program = two_stages(3);
  const std::vector<int> in_flight = {2, 2};
  program.loop_order = overlapped_runs(program, in_flight);
  ASSERT_EQ(check_loop_order(program), "");
  const LoopOrder right = program.loop_order;
  program.loop_order.turns.pop_back();
  EXPECT_EQ(check_loop_order(program), "17 turns of 3 runs of 6 instructions");
  program.loop_order = right;
  program.loop_order.turns.back() = right.turns.front();
  EXPECT_EQ(check_loop_order(program), "i0: run 0 twice");
  program.loop_order = right;
  program.loop_order.turns[0].instruction = 6;
  EXPECT_EQ(check_loop_order(program), "turn 0 is of no instruction of the loop");
  program.loop_order = right;
  program.loop_order.in_flight = 1;
  EXPECT_NE(check_loop_order(program).find("runs in flight"), std::string::npos);
  // The backward kernel before the forward one of the same run and worker.
  program.loop_order = right;
  const auto turn = [&](std::uint32_t instruction, std::uint32_t run) {
    return std::find_if(program.loop_order.turns.begin(), program.loop_order.turns.end(),
                        [&](const Turn& one) { return one.instruction == instruction && one.run == run; });
  };
  std::iter_swap(turn(2, 1), turn(3, 1));
  EXPECT_EQ(check_loop_order(program), "i2: run 1 out of order");
}

}  // namespace
}  // namespace shardplan
