#include "program/parallel_program.h"

#include <algorithm>

namespace shardplan {

std::size_t ParallelProgram::num_in_micro_batch() const {
  if (micro_batches == 1) return 0;
  const auto end = std::find_if(instructions.begin(), instructions.end(),
                                [&](const Instruction& instruction) { return instruction.runs != micro_batches; });
  return static_cast<std::size_t>(end - instructions.begin());
}

}  // namespace shardplan
