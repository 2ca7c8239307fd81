#include "program/yielding.h"

#include <gtest/gtest.h>

#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

/// All collectives on one level of links.
class LinkSketch : public TimeSketch {
 public:
  ValueId collective(Picoseconds time, ValueId input, std::uint32_t fusion = 0) {
    return TimeSketch::collective(time, input, 1, fusion);
  }
  /// The order that the given one is changed to.
  std::vector<std::uint32_t> yielded() const {
    return yielding(InstructionTable(program), given_order(program), overlapped_timeline(program).spans).sequence;
  }
};

using Places = std::vector<std::uint32_t>;

TEST(YieldingTest, AGatherThatBeginsWhenAReductionIsReadyGoesBehindIt) {
  for (const Picoseconds made : {20, 40}) {
    LinkSketch sketch;
    const ValueId first = sketch.kernel(10, {});
    sketch.collective(30, first);                       // 1: from 10 to 40
    sketch.collective(30, first);                       // 2: from 40
    const ValueId last = sketch.kernel(made, {first});  // 3: until 30 or 50
    sketch.kernel(5, {sketch.collective(5, last)});     // 4, 5
    EXPECT_EQ(sketch.yielded(), made == 20 ? (Places{0, 1, 3, 4, 2, 5}) : (Places{0, 1, 2, 3, 4, 5}));
  }
}

TEST(YieldingTest, TheSecondStageOfAGatherFollowsTheFirst) {
  LinkSketch sketch;
  const ValueId first = sketch.kernel(10, {});
  sketch.collective(30, first);
  sketch.collective(30, sketch.collective(30, first));  // 2, 3
  sketch.kernel(5, {sketch.collective(5, sketch.kernel(20, {first}))});
  EXPECT_EQ(sketch.yielded(), (Places{0, 1, 4, 5, 2, 3, 6}));
}

TEST(YieldingTest, BucketsStayInOnePiece) {
  LinkSketch sketch;
  const ValueId first = sketch.kernel(10, {});
  sketch.collective(30, first);
  sketch.collective(20, first, 1);  // 2, 3: one gather
  sketch.collective(20, first, 1);
  const ValueId last = sketch.kernel(20, {first});
  const ValueId a = sketch.collective(5, last, 2);  // 5, 6: one reduction
  const ValueId b = sketch.collective(5, last, 2);
  sketch.kernel(5, {a, b});
  sketch.program.buckets = {{CollectiveKind::kAllGather, {}, 30, 0, 2, ValueId(0)},
                            {CollectiveKind::kAllReduce, {}, 6, 0, 2, ValueId(0)}};
  EXPECT_EQ(sketch.yielded(), (Places{0, 1, 4, 5, 6, 2, 3, 7}));
}

TEST(YieldingTest, WhatAKernelWaitsForStays) {
  LinkSketch sketch;
  const ValueId first = sketch.kernel(10, {});
  sketch.collective(30, first);
  const ValueId needed = sketch.collective(30, first);
  const ValueId last = sketch.kernel(20, {first});
  sketch.kernel(5, {sketch.collective(5, last), needed});
  EXPECT_EQ(sketch.yielded(), (Places{0, 2, 1, 3, 4, 5}));
}

}  // namespace
}  // namespace shardplan
