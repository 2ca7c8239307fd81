#include "program/instruction_facts.h"

#include <gtest/gtest.h>

#include "costmodel/cluster/cluster_mesh.h"
#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

/// A program of one collective over hccs=4 from a value of `in` bytes to one of `out` bytes.
ParallelProgram collective(CollectiveKind kind, Bytes in, Bytes out) {
  ParallelProgram program;
  program.mesh = make_mesh(read_cluster("ascend-910"));
  for (const Bytes bytes : {in, out}) {
    ProgramValue value;
    value.bytes = bytes;
    program.values.push_back(std::move(value));
  }
  Instruction instruction;
  instruction.kind = InstructionKind::kCollective;
  instruction.step.edit().kind = kind;
  instruction.step.edit().axes = {program.mesh.whole(1)};
  instruction.inputs = {ValueId(0)};
  instruction.outputs = {ValueId(1)};
  program.instructions = {std::move(instruction)};
  return program;
}

TEST(InstructionFactsTest, BytesOfACollectiveAreThoseOfTheWholeTensorOfAGroup) {
  const struct {
    CollectiveKind kind;
    Bytes in, out, group;
    bool is_communication;
  } kCases[] = {
      {CollectiveKind::kAllGather, 64, 256, 256, true},        {CollectiveKind::kReduceScatter, 256, 64, 256, true},
      {CollectiveKind::kAllReduce, 256, 256, 256, true},       {CollectiveKind::kAllToAll, 64, 64, 256, true},
      {CollectiveKind::kCollectivePermute, 64, 64, 256, true}, {CollectiveKind::kSlice, 256, 64, 256, false},
      {CollectiveKind::kToPartial, 64, 64, 64, false},
  };
  for (const auto& test : kCases) {
    const ParallelProgram program = collective(test.kind, test.in, test.out);
    EXPECT_EQ(group_bytes(program, program.instructions[0]), test.group) << to_string(test.kind);
    EXPECT_EQ(is_communication(program.instructions[0]), test.is_communication) << to_string(test.kind);
    EXPECT_FALSE(is_computation(program.instructions[0]));
  }
}

TEST(InstructionFactsTest, AHaloBringsItsRows) {
  ParallelProgram program = collective(CollectiveKind::kSlice, 0, 0);
  program.values[ValueId(0)].local_shape = {2, 8, 4};
  program.values[ValueId(0)].bytes = 2 * 8 * 4 * 4;
  program.instructions[0].kind = InstructionKind::kHalo;
  Halo halo;
  halo.dimension = 1;
  halo.before = 2;
  halo.after = 1;
  program.instructions[0].halo = {halo};
  EXPECT_EQ(group_bytes(program, program.instructions[0]), 3 * 2 * 4 * 4);  // three rows of the eight
  EXPECT_TRUE(is_communication(program.instructions[0]));
}

TEST(InstructionFactsTest, StoredTensorsAreFoundByTheirValuesAndGradients) {
  const Plan plan = tiny_plan();
  std::set<std::string> found;
  for (const Instruction& instruction : plan.program.instructions) {
    const std::optional<TensorId> stored = stored_tensor(*plan.graph, plan.program, instruction);
    if (!is_communication(instruction)) continue;
    found.insert(stored ? plan.graph->tensor(*stored).name : "");
  }
  // The momenta are stored in pieces and gathered for replicated updates; the table's pieces are gathered for the head;
  // activations belong to nothing that is stored.
  EXPECT_EQ(found, (std::set<std::string>{"", "layers.0.up.weight.momentum", "layers.1.up.weight.momentum",
                                          "wte.embedding_table"}));
  // The gradient of a parameter belongs to that parameter.
  for (const Instruction& instruction : plan.program.instructions) {
    const std::optional<TensorId>& tensor = plan.program.values[instruction.outputs[0]].tensor;
    if (!tensor || !plan.graph->tensor(*tensor).gradient_of) continue;
    EXPECT_EQ(stored_tensor(*plan.graph, plan.program, instruction), plan.graph->tensor(*tensor).gradient_of);
  }
}

}  // namespace
}  // namespace shardplan
