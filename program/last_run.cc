#include "program/last_run.h"

#include <algorithm>

#include "program/instruction_facts.h"

namespace shardplan {

std::vector<LastRunCollective> issued_in_last_run(const ParallelProgram& program) {
  std::vector<LastRunCollective> issued;
  const std::size_t loop = program.num_in_micro_batch();
  if (!program.reduces_in_last_run || loop == 0) return issued;
  IdVector<ValueId, std::size_t> made_before(program.values.size(), 0);
  for (std::size_t i = 0; i < loop; ++i) {
    for (const ValueId output : program.instructions[i].outputs) made_before[output] = i + 1;
  }
  std::size_t after = 0;
  for (std::size_t i = loop; i < program.instructions.size() && is_communication(program.instructions[i]);) {
    const std::size_t begin = i;
    for (const std::size_t end = end_of_bucket(program, begin); i < end; ++i) {
      for (const ValueId input : program.instructions[i].inputs) after = std::max(after, made_before[input]);
    }
    issued.push_back({begin, i, after});
  }
  return issued;
}

}  // namespace shardplan
