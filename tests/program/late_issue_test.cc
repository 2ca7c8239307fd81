#include "program/late_issue.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "program/memory_profile.h"
#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

std::vector<std::uint32_t> late(const ParallelProgram& program) {
  return issued_late(InstructionTable(program), given_order(program), overlapped_timeline(program).spans).sequence;
}

using Places = std::vector<std::uint32_t>;

TEST(LateIssueTest, WhatWaitsForTheLinksIsIssuedBeforeTheKernelDuringWhichItBegins) {
  TimeSketch sketch;
  const ValueId x = sketch.kernel(10, {});
  const ValueId a = sketch.collective(25, x);  // from 10 to 35
  const ValueId b = sketch.collective(20, x);  // from 35
  sketch.kernel(20, {x});                      // 3: until 30
  sketch.kernel(10, {x});                      // 4: until 40
  sketch.kernel(5, {a});
  sketch.kernel(5, {b});
  EXPECT_EQ(late(sketch.program), (Places{0, 1, 3, 2, 4, 5, 6}));
}

TEST(LateIssueTest, WhatIsMadeOfItGoesWithIt) {
  TimeSketch sketch;
  const ValueId x = sketch.kernel(10, {});
  sketch.collective(25, x);
  const ValueId b = sketch.kernel(0, {sketch.collective(20, x)});  // 2, 3: takes no time, as a view
  sketch.kernel(20, {x});
  sketch.kernel(5, {b});
  EXPECT_EQ(late(sketch.program), (Places{0, 1, 4, 2, 3, 5}));
}

TEST(LateIssueTest, BucketsStayInOnePiece) {
  TimeSketch sketch;
  const ValueId x = sketch.kernel(10, {});
  sketch.collective(25, x);
  const ValueId b = sketch.collective(20, x, 1, 1), c = sketch.collective(20, x, 1, 1);
  sketch.kernel(20, {x});
  sketch.kernel(5, {b, c});
  sketch.program.buckets = {{CollectiveKind::kAllReduce, {}, 30, 0, 2, ValueId(0)}};
  EXPECT_EQ(late(sketch.program), (Places{0, 1, 4, 2, 3, 5}));
}

TEST(LateIssueTest, NothingBeginsAtAnotherTimeAndNoMoreIsHeld) {
  std::size_t moved = 0, less = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    TimeSketch sketch;
    std::vector<ValueId> values;
    const auto some_value = [&] { return values[random.below(values.size())]; };
    values.push_back(sketch.kernel(1 + static_cast<Picoseconds>(random.below(20)), {}));
    for (int i = 0; i < 40; ++i) {
      const auto time = static_cast<Picoseconds>(random.below(30));
      if (random.below(2) == 0) {
        values.push_back(sketch.kernel(1 + time, {some_value(), some_value()}));
      } else {
        values.push_back(sketch.collective(time, some_value(), static_cast<std::uint32_t>(1 + random.below(3))));
      }
    }
    std::vector<ValueId> unread;
    for (const ValueId id : values) {
      const bool is_read = std::ranges::any_of(sketch.program.instructions, [&](const Instruction& instruction) {
        return std::ranges::find(instruction.inputs, id) != instruction.inputs.end();
      });
      if (!is_read) unread.push_back(id);
    }
    sketch.kernel(1, unread);
    for (const ValueId id : sketch.program.values.ids()) {
      sketch.program.values[id].bytes = static_cast<Bytes>(1 + random.below(100));
    }
    const OverlappedTimeline before = overlapped_timeline(sketch.program);
    const IssueOrder order = issued_late(InstructionTable(sketch.program), given_order(sketch.program), before.spans);
    ParallelProgram program = sketch.program;
    for (std::size_t place = 0; place < order.sequence.size(); ++place) {
      program.instructions[place] = sketch.program.instructions[order.sequence[place]];
    }
    const OverlappedTimeline after = overlapped_timeline(program);
    for (std::size_t place = 0; place < order.sequence.size(); ++place) {
      if (!sketch.program.instructions[order.sequence[place]].time) continue;
      EXPECT_EQ(after.spans[place], before.spans[order.sequence[place]]) << place;
    }
    const Bytes held = memory_profile(program, after).peak;
    const Bytes held_before = memory_profile(sketch.program, before).peak;
    EXPECT_LE(held, held_before);
    moved += std::ranges::is_sorted(order.sequence) ? 0 : 1;
    less += held < held_before ? 1 : 0;
  }
  EXPECT_GT(moved, 250u);
  EXPECT_GT(less, 30u);
}

}  // namespace
}  // namespace shardplan
