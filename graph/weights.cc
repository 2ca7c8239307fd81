#include "graph/weights.h"

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

}  // namespace shardplan
