#include "program/prefetch.h"

#include <gtest/gtest.h>

#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

/// A sketch whose collectives gather.
struct GatherSketch : TimeSketch {
  ValueId given() { return program.values.push_back({}); }
  ValueId gather(Picoseconds time, ValueId input, Bytes bytes = 1) {
    const ValueId gathered = collective(time, input);
    program.instructions.back().step.edit().kind = CollectiveKind::kAllGather;
    program.values[gathered].bytes = bytes;
    return gathered;
  }

  IssueOrder prefetched(std::optional<Bytes> joins = std::nullopt) const {
    return shardplan::prefetched(InstructionTable(program), OperatorGraph(), given_order(program), joins);
  }
};

using Sequence = std::vector<std::uint32_t>;
using Buckets = std::vector<std::uint32_t>;

TEST(PrefetchTest, AGatherEndsWhenItsReaderBegins) {
  GatherSketch sketch;
  const ValueId weight = sketch.given();
  const ValueId a = sketch.kernel(10, {});
  const ValueId b = sketch.kernel(10, {a});
  const ValueId gathered = sketch.gather(7, weight);
  sketch.kernel(5, {b, gathered});
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 2, 1, 3}));
  // With one that takes 16, the first kernel is needed too.
  sketch.program.instructions[2].time = 16;
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{2, 0, 1, 3}));
}

TEST(PrefetchTest, WhatIsMadeIsNotPrefetched) {
  GatherSketch sketch;
  const ValueId a = sketch.kernel(10, {});
  const ValueId b = sketch.kernel(10, {a});
  const ValueId gathered = sketch.gather(7, a);
  sketch.kernel(5, {b, gathered});
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 1, 2, 3}));
}

// The operand of a product that the gradient of the weight needs, in pieces since the forward pass: gathered beside the
// product before.
TEST(PrefetchTest, WhatIsKeptSinceTheForwardPassIs) {
  GatherSketch sketch;
  const ValueId a = sketch.kernel(10, {});
  const ValueId b = sketch.kernel(10, {a});
  const ValueId c = sketch.kernel(10, {b});
  const ValueId gathered = sketch.gather(7, a);
  sketch.kernel(5, {c, gathered});
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 1, 2, 3, 4}));
  for (const std::size_t backward : {1, 2, 3, 4}) sketch.program.instructions[backward].pass = Pass::kBackward;
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 1, 3, 2, 4}));
  // Not before it is produced, however long it takes; nor is a weight's gather placed after its reader.
  sketch.program.instructions[3].time = 70;
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 3, 1, 2, 4}));
  const ValueId weight = sketch.given();
  const ValueId d = sketch.gather(70, weight);
  sketch.kernel(5, {d});
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 3, 5, 1, 2, 4, 6}));
}

/// FSDP's float8 all-gather: the kernel that converts a stored weight for the gather moves with it.
TEST(PrefetchTest, AWeightIsConvertedBeforeItsGather) {
  GatherSketch sketch;
  const ValueId weight = sketch.given();
  const ValueId a = sketch.kernel(10, {});
  const ValueId b = sketch.kernel(10, {a});
  const ValueId converted = sketch.kernel(1, {weight});
  const ValueId gathered = sketch.gather(7, converted);
  sketch.kernel(5, {b, gathered});
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 1, 2, 3, 4})) << "any kernel";
  sketch.program.instructions[2].operation = std::make_shared<const Operation>(
      make_operation(*find_operator_type("Cast"), {{"dtype", std::string("f8e4m3")}}, {{{1}, DataType::kBF16}}));
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 2, 3, 1, 4}));
  EXPECT_EQ(sketch.prefetched(Bytes{100}).sequence, (Sequence{0, 2, 3, 1, 4}));
  // Another gather of the result, for a later reader, stays where it is.
  const ValueId again = sketch.gather(7, converted);
  sketch.kernel(5, {again});
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 2, 3, 1, 4, 5, 6}));
  // What an earlier kernel computes is not given.
  sketch.program.instructions[2].inputs = {a};
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 1, 2, 3, 4, 5, 6}));
}

TEST(PrefetchTest, AGatherBeforeAnotherOneLeavesItTheLinks) {
  GatherSketch sketch;
  const ValueId first = sketch.given(), second = sketch.given();
  const ValueId a = sketch.kernel(10, {});
  const ValueId b = sketch.kernel(10, {a});
  const ValueId one = sketch.gather(8, first);
  const ValueId c = sketch.kernel(4, {b, one});
  const ValueId two = sketch.gather(8, second);
  sketch.kernel(4, {c, two});
  // From the start of the step: the second from 16 to 24, the first from 8 to 16, although its reader begins at 20.
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{2, 0, 4, 1, 3, 5}));
}

TEST(PrefetchTest, TheLoopKeepsItsGathers) {
  GatherSketch sketch;
  const ValueId weight = sketch.given();
  const ValueId a = sketch.kernel(10, {});
  const ValueId b = sketch.kernel(2, {a});
  const ValueId gathered = sketch.gather(7, weight);
  sketch.kernel(5, {b, gathered});
  sketch.program.micro_batches = 2;
  sketch.program.instructions[0].runs = 2;
  EXPECT_EQ(sketch.prefetched().sequence, (Sequence{0, 2, 1, 3}));
}

TEST(PrefetchTest, WhatStandsBesideEachOtherIsOneOfAtMostSoManyBytes) {
  GatherSketch sketch;
  const ValueId x = sketch.given(), y = sketch.given(), z = sketch.given();
  const ValueId a = sketch.kernel(30, {});
  const ValueId one = sketch.gather(2, x, 40), two = sketch.gather(2, y, 40), three = sketch.gather(2, z, 40);
  sketch.kernel(5, {a, one, two, three});
  EXPECT_EQ(sketch.prefetched(Bytes{100}).sequence, (Sequence{1, 2, 3, 0, 4}));
  EXPECT_EQ(sketch.prefetched(Bytes{100}).buckets, (Buckets{0, 1, 1, 0, 0}));
  EXPECT_EQ(sketch.prefetched(Bytes{120}).buckets, (Buckets{0, 1, 1, 1, 0}));
  EXPECT_EQ(sketch.prefetched(Bytes{79}).buckets, (Buckets{0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace shardplan
