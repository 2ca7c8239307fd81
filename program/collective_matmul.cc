#include "program/collective_matmul.h"

#include <algorithm>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {
namespace {

bool has_window(const std::vector<TensorWalk>& walks) {
  return std::any_of(walks.begin(), walks.end(), [](const TensorWalk& walk) {
    return std::any_of(walk.begin(), walk.end(), [](const DimensionWalk& d) { return d.window.has_value(); });
  });
}

}  // namespace

bool is_product(const Operation& operation) {
  const OperatorType& type = *operation.type;
  return type.work == WorkKind::kContraction && type.role == OperatorRole::kOther && type.phases == nullptr &&
         operation.operands.size() == 2 && operation.results.size() == 1 && !has_window(operation.rule.operands) &&
         !has_window(operation.rule.results);
}

bool is_activation(const OperatorGraph& graph, TensorId id) {
  const GraphTensor& tensor = graph.tensor(id);
  if (!tensor.producer || tensor.updates || tensor.gradient_of) return false;
  return std::none_of(tensor.readers.begin(), tensor.readers.end(), [&](const Reader& reader) {
    const GraphOperator& op = graph.operators()[reader.op];
    // Backward operators without a forward operator turn a parameter's gradient into what its update reads.
    return op.pass == Pass::kUpdate || (op.pass == Pass::kBackward && !op.forward);
  });
}

void cut_in_pieces(ParallelProgram& program, const OperatorGraph& graph) {
  IdVector<ValueId, char> is_read_by_product(program.values.size(), 0), is_made_by_product(program.values.size(), 0);
  const auto is_kernel_of_product = [](const Instruction& instruction) {
    return instruction.kind == InstructionKind::kOperator && is_product(*instruction.operation);
  };
  for (const Instruction& instruction : program.instructions) {
    if (!is_kernel_of_product(instruction)) continue;
    for (const ValueId input : instruction.inputs) is_read_by_product[input] = 1;
    for (const ValueId output : instruction.outputs) is_made_by_product[output] = 1;
  }
  for (Instruction& instruction : program.instructions) {
    if (instruction.kind != InstructionKind::kCollective) continue;
    const std::optional<TensorId> tensor = program.values[instruction.outputs[0]].tensor;
    if (!tensor || !is_activation(graph, *tensor)) continue;
    const CollectiveKind kind = instruction.step->kind;
    instruction.in_pieces = (kind == CollectiveKind::kAllGather && is_read_by_product[instruction.outputs[0]] != 0) ||
                            (kind == CollectiveKind::kReduceScatter && is_made_by_product[instruction.inputs[0]] != 0);
  }
}

}  // namespace shardplan
