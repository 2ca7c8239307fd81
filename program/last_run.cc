#include "program/last_run.h"

#include <algorithm>

#include "program/instruction_table.h"

namespace shardplan {

std::vector<LastRunCollective> issued_in_last_run(const TableOrder& order) {
  std::vector<LastRunCollective> issued;
  const std::size_t loop = order.table->loop();
  if (!order.reduces_in_last_run || loop == 0) return issued;
  IdVector<ValueId, std::size_t> made_before(order.num_values(), 0);
  for (std::size_t i = 0; i < loop; ++i) {
    for (const ValueId output : order.outputs(i)) made_before[output] = i + 1;
  }
  std::size_t after = 0;
  for (std::size_t i = loop; i < order.size() && order[i].is_communication;) {
    const std::size_t begin = i;
    for (const std::size_t end = order.end_of_bucket(begin); i < end; ++i) {
      for (const ValueId input : order.inputs(i)) after = std::max(after, made_before[input]);
    }
    issued.push_back({begin, i, after});
  }
  return issued;
}

std::vector<LastRunCollective> issued_in_last_run(const ParallelProgram& program) {
  if (!program.reduces_in_last_run) return {};
  const InstructionTable table(program);
  return issued_in_last_run(TableOrder(table));
}

}  // namespace shardplan
