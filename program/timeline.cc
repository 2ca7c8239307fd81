#include "program/timeline.h"

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

PassTimes pass_times(const ParallelProgram& program, Pass pass) {
  PassTimes times;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.pass != pass) continue;
    (is_computation(instruction) ? times.computation : times.communication) += instruction.time_of_step();
  }
  return times;
}

}  // namespace shardplan
