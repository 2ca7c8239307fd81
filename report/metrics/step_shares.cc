#include "report/metrics/step_shares.h"

#include "graph/folded_names.h"

namespace shardplan {

std::optional<OperatorId> spender(const Plan& plan, const Instruction& instruction) {
  if (instruction.op) return instruction.op;
  if (const auto reader = plan.graph->find_operator(instruction.origin->consumer)) return reader;
  if (const auto maker = plan.graph->find_operator(instruction.origin->producer)) return maker;
  const auto& tensor = plan.program.values[instruction.outputs[0]].tensor;
  return tensor ? plan.graph->tensor(*tensor).producer : std::nullopt;
}

std::string folded_block(const OperatorGraph& graph, OperatorId op) {
  const GraphOperator& named = graph.operators()[op];
  const std::string& name = named.forward     ? graph.operators()[*named.forward].name
                            : named.parameter ? graph.tensor(*named.parameter).name
                                              : named.name;
  return folded_name(top_block(name));
}

}  // namespace shardplan
