#include "program/instruction_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "operators/catalogue.h"
#include "program/buckets.h"
#include "program/memory_profile.h"
#include "program/overlapped_timeline.h"

namespace shardplan {
namespace {

class TimeIsBytes final : public CollectiveCosts {
 public:
  Picoseconds time(CollectiveKind, const std::vector<AxisRef>&, Bytes bytes) const override { return bytes; }
};

/// Kernels, views and collectives on random values, the first `loop` of which run with each of three micro-batches; one
/// parameter gets a new value.
ParallelProgram random_program_of_a_loop(Random& random) {
  const auto operation = [](std::string_view type, const Attributes& attributes) {
    return std::make_shared<const Operation>(
        make_operation(*find_operator_type(type), attributes, {{{4}, DataType::kF32}}));
  };
  const auto relu = operation("ReLU", {});
  const auto view = operation("Reshape", {{"shape", std::vector<std::int64_t>{2, 2}}});
  ParallelProgram program;
  const auto add_value = [&](std::int64_t elements) {
    ProgramValue value;
    value.type = {{elements}, DataType::kF32};
    value.local_shape = {elements};
    value.bytes = 4 * elements;
    value.in_registers = random.below(10) == 0;
    return program.values.push_back(std::move(value));
  };
  std::vector<ValueId> made{add_value(7), add_value(9)};
  program.given = {{TensorId(0), made[0], true}, {TensorId(1), made[1]}};
  const std::uint64_t count = 3 + random.below(30);
  const std::uint64_t loop = random.below(3) == 0 ? random.below(count) : 0;
  if (loop > 0) program.micro_batches = 3;
  program.reduces_in_last_run = loop > 0 && random.below(2) == 0;
  program.speeds_together = {{800'000, 600'000}, {900'000, 1'000'000}};
  for (std::uint64_t i = 0; i < count; ++i) {
    Instruction instruction;
    instruction.runs = i < loop ? 3 : 1;
    instruction.time = static_cast<Picoseconds>(random.below(20));
    instruction.inputs = {made[random.below(made.size())]};
    std::int64_t elements = 1 + static_cast<std::int64_t>(random.below(50));
    switch (random.below(4)) {
      case 0:
        instruction.operation = relu;
        instruction.inputs.push_back(made.back());
        break;
      case 1:
        instruction.operation = view;
        instruction.time = 0;
        elements = program.values[instruction.inputs[0]].type.shape[0];
        break;
      default:
        instruction.kind = InstructionKind::kCollective;
        instruction.step.edit().kind = random.below(2) == 0 ? CollectiveKind::kAllReduce : CollectiveKind::kAllGather;
        instruction.links = 1 + static_cast<std::uint32_t>(random.below(3));
    }
    instruction.outputs = {add_value(elements)};
    made.push_back(instruction.outputs[0]);
    program.instructions.push_back(std::move(instruction));
  }
  program.updates = {{TensorId(1), made.back()}};
  return program;
}

// A table's facts about an order equal those of the program in that order.
TEST(InstructionTableTest, AnOrderIsJudgedAsTheProgramInThatOrder) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ParallelProgram program = random_program_of_a_loop(random);
    IssueOrder wanted;
    wanted.reduces_in_last_run = program.reduces_in_last_run;
    for (std::uint32_t i = 0; i < program.instructions.size(); ++i) {
      wanted.sequence.push_back(i);
      const Instruction& instruction = program.instructions[i];
      const std::uint32_t bucket = instruction.step->kind == CollectiveKind::kAllReduce ? 1 : 2;
      const bool is_joined = instruction.kind == InstructionKind::kCollective && random.below(3) > 0;
      wanted.buckets.push_back(is_joined ? bucket : 0);
    }
    const IssueOrder order = with_buckets(InstructionReads(program), wanted);
    ParallelProgram moved = in_order(program, order, TimeIsBytes());
    moved.reduces_in_last_run = order.reduces_in_last_run;
    const InstructionTable table(program);
    const TableOrder tried = in_order(table, order, TimeIsBytes());
    const OverlappedTimeline times = overlapped_timeline(tried), expected = overlapped_timeline(moved);
    EXPECT_EQ(times.spans, expected.spans);
    EXPECT_EQ(times.end, expected.end);
    EXPECT_EQ(times.link_busy, expected.link_busy);
    EXPECT_EQ(memory_peak(tried, &times), memory_profile(moved, expected).peak);
    EXPECT_EQ(memory_peak(tried, nullptr), memory_profile(moved).peak);
    EXPECT_LE(memory_peak(tried, &times), tried.all_bytes());
  }
}

}  // namespace
}  // namespace shardplan
