#include "program/memory_profile.h"

#include <gtest/gtest.h>

#include "operators/catalogue.h"
#include "program/instruction_table.h"

namespace shardplan {
namespace {

std::shared_ptr<const Operation> operation(const char* type, const Attributes& attributes, const Shape& shape) {
  return std::make_shared<const Operation>(
      make_operation(*find_operator_type(type), attributes, {{shape, DataType::kF32}}));
}

/// Builds a program of values of the given bytes.
class Hand {
 public:
  ValueId value(Bytes bytes) {
    ProgramValue added;
    added.bytes = bytes;
    return program.values.push_back(std::move(added));
  }
  ValueId given(Bytes bytes, TensorId tensor, bool is_input = false) {
    const ValueId id = value(bytes);
    program.given.push_back({tensor, id, is_input});
    return id;
  }
  ValueId run(const std::shared_ptr<const Operation>& what, std::vector<ValueId> inputs, Bytes bytes) {
    const ValueId output = value(bytes);
    Instruction instruction;
    instruction.operation = what;
    instruction.inputs = std::move(inputs);
    instruction.outputs = {output};
    program.instructions.push_back(std::move(instruction));
    return output;
  }

  ParallelProgram program;
};

TEST(MemoryProfileTest, AnInstructionHoldsItsInputsItsOutputsAndWhatIsReadLater) {
  const auto relu = operation("ReLU", {}, {4});
  Hand hand;
  const ValueId x = hand.given(100, TensorId(0), true);
  const ValueId w = hand.given(1000, TensorId(1));
  const ValueId a = hand.run(relu, {x, w}, 10);
  const ValueId b = hand.run(relu, {a}, 20);  // the input is gone, the parameter stays
  const ValueId c = hand.run(relu, {a, b}, 5);
  hand.program.outputs = {{TensorId(2), c}};
  const MemoryProfile memory = memory_profile(hand.program);
  EXPECT_EQ(memory.bytes, (std::vector<Bytes>{1110, 1030, 1035}));
  EXPECT_EQ(memory.peak, 1110);
  EXPECT_EQ(memory.peak_instruction, 0u);
  ASSERT_EQ(memory.alive_at_peak.size(), 3u);
  EXPECT_EQ(memory.alive_at_peak[0].value, w);
  EXPECT_EQ(memory.alive_at_peak[2].bytes, 10);
}

TEST(MemoryProfileTest, AViewStandsInTheMemoryOfWhatItIsAViewOf) {
  const auto relu = operation("ReLU", {}, {4});
  const auto reshape = operation("Reshape", {{"shape", std::vector<std::int64_t>{2, 2}}}, {4});
  Hand hand;
  const ValueId x = hand.given(8, TensorId(0), true);
  const ValueId a = hand.run(relu, {x}, 100);
  const ValueId view = hand.run(reshape, {a}, 100);
  const ValueId b = hand.run(relu, {x}, 10);
  hand.run(relu, {view, b}, 1);
  EXPECT_EQ(memory_profile(hand.program).bytes, (std::vector<Bytes>{108, 108, 118, 111}));
}

TEST(MemoryProfileTest, ANewValueIsWrittenOverTheOldOne) {
  const auto relu = operation("ReLU", {}, {4});
  Hand hand;
  const ValueId w = hand.given(100, TensorId(0));
  const ValueId gradient = hand.run(relu, {w}, 30);
  const ValueId updated = hand.run(relu, {w, gradient}, 100);
  hand.program.updates = {{TensorId(0), updated}};
  EXPECT_EQ(memory_profile(hand.program).bytes, (std::vector<Bytes>{130, 130}));
  // Unless the old one is read again.
  hand.run(relu, {w}, 1);
  EXPECT_EQ(memory_profile(hand.program).bytes, (std::vector<Bytes>{130, 230, 201}));
}

/// A program of three micro-batches that reduces sums in the last run.
struct LastRunHand : Hand {
  LastRunHand() {
    program.micro_batches = 3;
    program.reduces_in_last_run = true;
  }
  ValueId kernel(std::vector<ValueId> inputs, Bytes bytes, std::int64_t runs) {
    const ValueId made = run(operation("ReLU", {}, {4}), std::move(inputs), bytes);
    program.instructions.back().time = 10;
    program.instructions.back().runs = runs;
    return made;
  }
  ValueId summed(ValueId gradient) {
    const auto sum = operation("Accumulate", {{"dtype", std::string("f32")}, {"count", std::int64_t{3}}}, {4});
    const ValueId made = run(sum, {gradient}, 100);
    program.instructions.back().time = 1;
    program.instructions.back().runs = 3;
    return made;
  }
  ValueId reduced(ValueId input, Bytes bytes = 10, Picoseconds time = 5) {
    const ValueId made = run(nullptr, {input}, bytes);
    Instruction& instruction = program.instructions.back();
    instruction.kind = InstructionKind::kCollective;
    instruction.step.edit().kind = CollectiveKind::kReduceScatter;
    instruction.time = time;
    instruction.links = 1;
    return made;
  }
};

// Two sums over three micro-batches, each reduced to a tenth in the last run: the first is freed once the kernel beside
// its reduction is done. The runs before hold both sums, and nothing reduced.
TEST(MemoryProfileTest, WhatTheLastRunReducesIsFreedInThatRun) {
  LastRunHand hand;
  const ValueId first = hand.summed(hand.kernel({}, 1, 3));
  const ValueId second = hand.summed(hand.kernel({}, 1, 3));
  const ValueId a = hand.reduced(first), b = hand.reduced(second);
  hand.kernel({a, b}, 1, 1);
  const OverlappedTimeline times = overlapped_timeline(hand.program);
  EXPECT_EQ(times.last_run, (std::vector<Picoseconds>{44, 54, 55, 65}));
  const MemoryProfile memory = memory_profile(hand.program, times);
  // The first reduction is issued when the first sum has freed its summand, and runs beside the second kernel.
  EXPECT_EQ(memory.bytes, (std::vector<Bytes>{201, 201, 211, 201, 120, 120, 21}));
  EXPECT_EQ(memory.peak, 211);
  EXPECT_EQ(memory_peak(TableOrder(InstructionTable(hand.program)), &times), 211);
  EXPECT_TRUE(memory.is_peak_of_last_run);
}

// A sum that is reduced in two steps: what is between them is freed in the last run as well.
TEST(MemoryProfileTest, WhatIsBetweenTwoReductionsOfTheLastRunIsFreedInThatRun) {
  LastRunHand hand;
  const ValueId first = hand.summed(hand.kernel({}, 1, 3));
  const ValueId second = hand.summed(hand.kernel({}, 1, 3));
  hand.summed(hand.kernel({}, 1, 3));
  const ValueId between = hand.reduced(first, 50, 2);
  const ValueId a = hand.reduced(between, 10, 2);
  hand.kernel({a, second}, 1, 1);
  const OverlappedTimeline times = overlapped_timeline(hand.program);
  const MemoryProfile memory = memory_profile(hand.program, times);
  // Both reductions run beside the second kernel; while the third runs, only their result is left.
  EXPECT_EQ(memory.bytes[2], 301 + 50 + 10);
  EXPECT_EQ(memory.bytes[4], 301);
  EXPECT_EQ(memory.peak, 361);
  EXPECT_EQ(memory_peak(TableOrder(InstructionTable(hand.program)), &times), 361);
}

}  // namespace
}  // namespace shardplan
