#include "program/memory_profile.h"

#include <gtest/gtest.h>

#include "operators/catalogue.h"

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

}  // namespace
}  // namespace shardplan
