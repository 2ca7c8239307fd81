#include "program/early_issue.h"

#include <gtest/gtest.h>

#include "tests/support/time_sketch.h"

namespace shardplan {
namespace {

using Places = std::vector<std::uint32_t>;

class EarlySketch : public TimeSketch {
 public:
  /// A value of this many bytes.
  ValueId sized(ValueId value, Bytes bytes) {
    program.values[value].bytes = bytes;
    return value;
  }
  ValueId gather(Picoseconds time, ValueId input) {
    const ValueId made = collective(time, input);
    program.instructions.back().step.edit().kind = CollectiveKind::kAllGather;
    return made;
  }

  Places early() const { return issued_early(InstructionTable(program), given_order(program)).sequence; }
  Places early_then_delayed() const {
    const InstructionTable table(program);
    return delayed(table, issued_early(table, given_order(program))).sequence;
  }
};

TEST(EarlyIssueTest, AReductionGoesBehindWhatItSums) {
  EarlySketch sketch;
  const ValueId a = sketch.kernel(1, {});
  const ValueId b = sketch.kernel(1, {a});
  const ValueId sum_of_b = sketch.collective(1, b);
  const ValueId sum_of_a = sketch.collective(1, a);
  sketch.kernel(1, {sum_of_a, sum_of_b});
  EXPECT_EQ(sketch.early(), (Places{0, 3, 1, 2, 4}));
}

// A gathered value is larger than its pieces, except in the second half of an all_reduce.
TEST(EarlyIssueTest, AGatherStaysUnlessItGivesBackWhatWasThere) {
  EarlySketch sketch;
  const ValueId a = sketch.sized(sketch.kernel(1, {}), 8);
  sketch.kernel(1, {a});
  const ValueId scattered = sketch.sized(sketch.collective(1, a), 2);
  const ValueId whole = sketch.sized(sketch.gather(1, scattered), 8);
  const ValueId larger = sketch.sized(sketch.gather(1, whole), 16);
  sketch.kernel(1, {larger});
  EXPECT_EQ(sketch.early(), (Places{0, 2, 3, 1, 4, 5}));
}

TEST(EarlyIssueTest, AKernelThatOnlyWaitsForAReductionStandsBeforeItsReader) {
  EarlySketch sketch;
  const ValueId a = sketch.kernel(1, {});
  const ValueId cast = sketch.kernel(1, {sketch.collective(1, a)});
  const ValueId b = sketch.kernel(1, {a});
  sketch.kernel(1, {b});
  sketch.kernel(1, {cast});
  EXPECT_EQ(sketch.early_then_delayed(), (Places{0, 1, 3, 4, 2, 5}));
}

}  // namespace
}  // namespace shardplan
