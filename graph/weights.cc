#include "graph/weights.h"

#include <algorithm>
#include <string_view>

namespace shardplan {
namespace {

bool is_inserted_cast(const OperatorGraph& graph, OperatorId op) {
  return graph.operators()[op].is_inserted && graph.operation(op).type->role == OperatorRole::kConversion;
}

}  // namespace

TensorId behind_casts(const OperatorGraph& graph, TensorId tensor) {
  while (graph.tensor(tensor).producer &&
         graph.operation(*graph.tensor(tensor).producer).type->role == OperatorRole::kConversion) {
    tensor = graph.operators()[*graph.tensor(tensor).producer].operands[0];
  }
  return tensor;
}

bool is_cast_parameter(const OperatorGraph& graph, TensorId tensor) {
  const TensorId stored = behind_casts(graph, tensor);
  return stored != tensor && graph.tensor(stored).kind == TensorKind::kParameter;
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

TensorId behind_inserted_cast(const OperatorGraph& graph, TensorId operand) {
  const std::optional<OperatorId> producer = graph.tensor(operand).producer;
  return producer && is_inserted_cast(graph, *producer) ? graph.operators()[*producer].operands[0] : operand;
}

IdVector<TensorId, char> weights_only_in(const OperatorGraph& graph, const std::vector<OperatorId>& products) {
  IdVector<OperatorId, char> is_product(graph.operators().size(), 0);
  for (const OperatorId id : products) is_product[id] = 1;
  const auto is_in_product = [&](const Reader& reader) { return is_product[reader.op] != 0; };
  const auto ends_in_product = [&](const Reader& reader) {
    if (!is_inserted_cast(graph, reader.op)) return is_in_product(reader);
    return std::ranges::all_of(graph.tensor(graph.operators()[reader.op].results[0]).readers, is_in_product);
  };
  IdVector<TensorId, char> result(graph.tensors().size(), 0);
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    const bool is_weight = tensor.kind == TensorKind::kParameter && tensor.type.shape.size() >= 2;
    result[id] = is_weight && is_floating(tensor.type.dtype) && !tensor.is_output &&
                 std::ranges::all_of(tensor.readers, ends_in_product);
  }
  return result;
}

}  // namespace shardplan
