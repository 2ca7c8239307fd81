#include "graph/weights.h"

#include <algorithm>
#include <string_view>

namespace shardplan {

TensorId behind_casts(const OperatorGraph& graph, TensorId tensor) {
  while (graph.tensor(tensor).producer &&
         graph.operation(*graph.tensor(tensor).producer).type->role == OperatorRole::kConversion) {
    tensor = graph.operators()[*graph.tensor(tensor).producer].operands[0];
  }
  return tensor;
}

std::optional<TensorId> stored_weight(const OperatorGraph& graph, TensorId operand) {
  const TensorId id = behind_casts(graph, operand);
  const GraphTensor& tensor = graph.tensor(id);
  return tensor.kind == TensorKind::kParameter && tensor.type.shape.size() >= 2 ? std::optional(id) : std::nullopt;
}

const GraphTensor* weight_of(const OperatorGraph& graph, TensorId operand) {
  const std::optional<TensorId> weight = stored_weight(graph, operand);
  return weight ? &graph.tensor(*weight) : nullptr;
}

bool multiplies_weight(const OperatorGraph& graph, OperatorId op) {
  const std::string_view name = graph.operation(op).type->name;
  const auto& operands = graph.operators()[op].operands;
  if ((name != "MatMul" && name != "BatchMatMul" && name != "Einsum") || operands.size() != 2) return false;
  if (!is_floating(graph.operation(op).results[0].dtype)) return false;
  return std::ranges::any_of(operands, [&](TensorId id) { return weight_of(graph, id) != nullptr; });
}

}  // namespace shardplan
