#include "program/instruction_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan {

bool is_computation(const Instruction& instruction) {
  return instruction.kind == InstructionKind::kOperator || instruction.kind == InstructionKind::kConstant;
}

bool is_communication(const Instruction& instruction) {
  if (instruction.kind == InstructionKind::kHalo || instruction.kind == InstructionKind::kSend) return true;
  return instruction.kind == InstructionKind::kCollective && instruction.step->kind != CollectiveKind::kSlice &&
         instruction.step->kind != CollectiveKind::kToPartial;
}

bool is_accumulating(const Instruction& instruction) {
  return instruction.runs > 1 && instruction.kind == InstructionKind::kOperator &&
         instruction.operation->type->accumulates;
}

std::size_t end_of_bucket(const ParallelProgram& program, std::size_t begin) {
  const std::uint32_t bucket = program.instructions[begin].fusion;
  std::size_t end = begin + 1;
  while (bucket > 0 && end < program.instructions.size() && program.instructions[end].fusion == bucket) ++end;
  return end;
}

int worker_of(const ParallelProgram& program, const Instruction& instruction) {
  const bool is_send = instruction.kind == InstructionKind::kSend;
  return is_send ? program.values[instruction.inputs[0]].worker : result_worker(program, instruction);
}

int result_worker(const ParallelProgram& program, const Instruction& instruction) {
  return instruction.outputs.empty() ? 0 : program.values[instruction.outputs[0]].worker;
}

std::string workers_text(const ParallelProgram& program, const Instruction& instruction) {
  return fmt::format("worker {} -> {}", worker_of(program, instruction), result_worker(program, instruction));
}

Bytes group_bytes(const ParallelProgram& program, const Instruction& instruction) {
  const Bytes in = instruction.inputs.empty() ? 0 : program.values[instruction.inputs[0]].bytes;
  const Bytes out = instruction.outputs.empty() ? 0 : program.values[instruction.outputs[0]].bytes;
  if (instruction.kind == InstructionKind::kHalo) {
    Bytes received = 0;
    const Shape& shape = program.values[instruction.inputs[0]].local_shape;
    for (const Halo& halo : instruction.halo) {
      if (shape[halo.dimension] > 0) received += in / shape[halo.dimension] * halo.received();
    }
    return received;
  }
  if (instruction.kind == InstructionKind::kSend) return in;
  switch (instruction.step->kind) {
    case CollectiveKind::kAllGather:
      return std::max(out, in * num_pieces(instruction.step->axes));  // unequal pieces are padded
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kCollectivePermute:
      return in * num_pieces(instruction.step->axes);
    default:
      return in;
  }
}

std::optional<TensorId> stored_tensor(const OperatorGraph& graph, const ParallelProgram& program,
                                      const Instruction& instruction) {
  const auto is_stored = [&](TensorId tensor) {
    return graph.tensor(tensor).kind == TensorKind::kParameter || graph.tensor(tensor).kind == TensorKind::kState;
  };
  for (const auto* values : {&instruction.outputs, &instruction.inputs}) {
    for (const ValueId value : *values) {
      const std::optional<TensorId> tensor = program.values[value].tensor;
      if (!tensor) continue;
      if (is_stored(*tensor)) return tensor;
      if (const auto updated = graph.tensor(*tensor).updates) return updated;
      if (const auto parameter = graph.tensor(*tensor).gradient_of) return parameter;
    }
  }
  return std::nullopt;
}

}  // namespace shardplan
