#pragma once

#include <utility>
#include <vector>

#include "program/parallel_program.h"
#include "tests/support/operations.h"

namespace shardplan {

/// Programs of several workers that are only times and dependencies.
class WorkerDraft {
 public:
  explicit WorkerDraft(int workers, std::int64_t micro_batches = 1) {
    program.workers = workers;
    program.micro_batches = micro_batches;
  }
  ValueId kernel(int worker, Picoseconds time, std::vector<ValueId> inputs = {}) {
    return add(InstructionKind::kOperator, worker, time, std::move(inputs));
  }
  /// To another worker.
  ValueId send(int worker, Picoseconds time, ValueId input) {
    return add(InstructionKind::kSend, worker, time, {input});
  }
  /// What comes next runs once, after the loop.
  void end_loop() { is_in_loop_ = false; }

  ParallelProgram program;

 private:
  ValueId add(InstructionKind kind, int worker, Picoseconds time, std::vector<ValueId> inputs) {
    ProgramValue value;
    value.worker = worker;
    Instruction instruction;
    instruction.kind = kind;
    instruction.name = "i" + std::to_string(program.instructions.size());
    instruction.time = time;
    instruction.runs = is_in_loop_ ? program.micro_batches : 1;
    instruction.inputs = std::move(inputs);
    instruction.outputs = {program.values.push_back(std::move(value))};
    if (kind == InstructionKind::kOperator) instruction.operation = relu_;
    program.instructions.push_back(std::move(instruction));
    return program.instructions.back().outputs[0];
  }

  bool is_in_loop_ = true;
  std::shared_ptr<const Operation> relu_ = std::make_shared<const Operation>(operation_of("ReLU", {}, {{1}}));
};

}  // namespace shardplan
