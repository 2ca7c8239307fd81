#include "program/timeline.h"

#include <utility>

#include "base/integer.h"
#include "program/instruction_facts.h"

namespace shardplan {

Timeline timeline(const ParallelProgram& program) {
  const std::size_t loop = program.num_in_micro_batch();
  Timeline result;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    result.starts.push_back(result.end);
    result.end += instruction.time;
    if (i + 1 == loop) result.end *= program.micro_batches;
    (is_computation(instruction) ? result.computation : result.communication) += instruction.time_of_step();
  }
  result.exposed = result.end - result.computation;
  return result;
}

Picoseconds joined_communication(const ParallelProgram& program) {
  std::vector<char> is_counted(program.buckets.size(), 0);
  Picoseconds sum = 0;
  for (const Instruction& instruction : program.instructions) {
    if (is_computation(instruction)) continue;
    if (instruction.fusion == 0) {
      sum += instruction.time_of_step();
    } else if (!std::exchange(is_counted[instruction.fusion - 1], 1)) {
      sum += program.buckets[instruction.fusion - 1].time * instruction.runs;
    }
  }
  return sum;
}

Picoseconds repeated_time(const ParallelProgram& program) {
  Picoseconds repeated = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind != InstructionKind::kOperator) continue;
    const Operation& operation = *instruction.operation;
    if (operation.type->work != WorkKind::kContraction) continue;
    std::int64_t cut = 1;
    for (const std::vector<AxisRef>& axes : instruction.strategy->factors) cut *= num_pieces(axes);
    const std::int64_t devices = program.mesh.num_devices();
    repeated += instruction.runs * (instruction.time - multiply_divide(instruction.time, cut, devices));
  }
  return repeated;
}

PassTimes pass_times(const ParallelProgram& program, Pass pass) {
  PassTimes times;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.pass != pass) continue;
    (is_computation(instruction) ? times.computation : times.communication) += instruction.time_of_step();
  }
  return times;
}

}  // namespace shardplan
