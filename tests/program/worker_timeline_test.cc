#include "program/worker_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "tests/support/worker_draft.h"

namespace shardplan {
namespace {

using WorkerSpan = OverlappedTimeline::Span;

TEST(WorkerTimelineTest, ASendWaitsForBothAndKeepsBoth) {
  WorkerDraft draft(2);
  const ValueId a = draft.kernel(0, 5);
  draft.kernel(1, 8);
  const ValueId sent = draft.send(1, 2, a);
  draft.kernel(0, 4, {a});
  draft.kernel(1, 7, {sent});
  const WorkerTimeline found = worker_timeline(draft.program);
  EXPECT_EQ(found.spans, (std::vector<WorkerSpan>{{0, 5}, {0, 8}, {8, 10}, {10, 14}, {10, 17}}));
  EXPECT_EQ(found.end, 17);
  EXPECT_EQ(found.workers[0].computation, 9);
  EXPECT_EQ(found.workers[0].sending, 2);
  EXPECT_EQ(found.workers[0].busy(), 11);
  EXPECT_EQ(found.workers[1].computation, 15);
  EXPECT_EQ(found.workers[1].receiving, 2);
  EXPECT_EQ(found.workers[1].receives, 1u);
  EXPECT_EQ(found.workers[1].operators, 2u);
  EXPECT_EQ(&found.busiest(), &found.workers[1]);
}

// Two stages of 3 and 5, three micro-batches, in sequence on each worker: the second stage's 15 after the first 3 and a
// send, whose 1 it pays each time.
TEST(WorkerTimelineTest, MicroBatchesFollowEachOther) {
  WorkerDraft draft(2, 3);
  const ValueId a = draft.kernel(0, 3);
  const ValueId sent = draft.send(1, 1, a);
  const ValueId b = draft.kernel(1, 5, {sent});
  draft.end_loop();
  draft.kernel(1, 2, {b});
  const WorkerTimeline found = worker_timeline(draft.program);
  EXPECT_EQ(found.end, 3 + 3 * (1 + 5) + 2);
  EXPECT_EQ(found.workers[1].computation, 17);
  EXPECT_EQ(found.workers[0].sending, 3);
}

/// Kernels and sends of up to three workers, each reading some earlier results.
ParallelProgram random_program(Random& random) {
  WorkerDraft draft(static_cast<int>(2 + random.below(2)));
  std::vector<std::vector<ValueId>> held(static_cast<std::size_t>(draft.program.workers));
  for (std::size_t i = 0; i < 6; ++i) {
    const std::size_t worker = random.below(held.size());
    const std::size_t other = random.below(held.size());
    const auto time = static_cast<Picoseconds>(random.below(9));
    if (other != worker && !held[worker].empty() && random.below(3) == 0) {
      const ValueId input = held[worker][random.below(held[worker].size())];
      held[other].push_back(draft.send(static_cast<int>(other), time, input));
    } else {
      std::vector<ValueId> inputs;
      for (const ValueId value : held[worker]) {
        if (random.below(2) == 0) inputs.push_back(value);
      }
      held[worker].push_back(draft.kernel(static_cast<int>(worker), time, std::move(inputs)));
    }
  }
  return draft.program;
}

// The bound never exceeds the minimum over all possible orders, and often equals it.
TEST(WorkerTimelineTest, NoOrderIsBelowTheLeastStep) {
  constexpr std::uint64_t kSeed = 83;
  Random random(kSeed);
  int met = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    const ParallelProgram program = random_program(random);
    std::vector<std::size_t> order(program.instructions.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Picoseconds least = INT64_MAX;
    do {
      ParallelProgram ordered = program;
      std::vector<char> is_made(program.values.size(), 0);
      bool can_run = true;
      for (std::size_t i = 0; i < order.size() && can_run; ++i) {
        ordered.instructions[i] = program.instructions[order[i]];
        for (const ValueId input : ordered.instructions[i].inputs) can_run = can_run && is_made[input.value()] != 0;
        is_made[ordered.instructions[i].outputs[0].value()] = 1;
      }
      if (can_run) least = std::min(least, worker_timeline(ordered).end);
    } while (std::next_permutation(order.begin(), order.end()));
    const Picoseconds bound = least_step(program);
    EXPECT_LE(bound, least) << "seed " << kSeed << ", round " << round;
    EXPECT_LE(bound, worker_timeline(program).end);
    met += bound == least ? 1 : 0;
  }
  EXPECT_GT(met, kRounds / 2);
}

}  // namespace
}  // namespace shardplan
