#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "operators/catalogue.h"
#include "program/buckets.h"
#include "program/parallel_program.h"

namespace shardplan {

/// A program's own order, with its buckets.
inline IssueOrder given_order(const ParallelProgram& program) {
  IssueOrder order;
  order.sequence.resize(program.instructions.size());
  std::iota(order.sequence.begin(), order.sequence.end(), std::uint32_t{0});
  for (const Instruction& instruction : program.instructions) order.buckets.push_back(instruction.fusion);
  return order;
}

/// Programs of kernels and collectives that are only times and dependencies.
class TimeSketch {
 public:
  TimeSketch() { program.instructions.reserve(64); }

  ValueId kernel(Picoseconds time, std::vector<ValueId> inputs) {
    return add(InstructionKind::kOperator, time, std::move(inputs), 0, 0);
  }
  ValueId collective(Picoseconds time, ValueId input, std::uint32_t links = 1, std::uint32_t fusion = 0) {
    return add(InstructionKind::kCollective, time, {input}, links, fusion);
  }

  ParallelProgram program;

 private:
  std::shared_ptr<const Operation> relu_ =
      std::make_shared<const Operation>(make_operation(*find_operator_type("ReLU"), {}, {{{1}, DataType::kF32}}));

  ValueId add(InstructionKind kind, Picoseconds time, std::vector<ValueId> inputs, std::uint32_t links,
              std::uint32_t fusion) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.time = time;
    instruction.inputs = std::move(inputs);
    instruction.outputs = {program.values.push_back({})};
    instruction.operation = relu_;
    instruction.step.edit().kind = CollectiveKind::kAllReduce;
    instruction.links = links;
    instruction.fusion = fusion;
    program.instructions.push_back(std::move(instruction));
    return program.instructions.back().outputs[0];
  }
};

}  // namespace shardplan
