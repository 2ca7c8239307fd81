#pragma once

#include <optional>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// The tensor from which another is made by conversions only.
TensorId behind_casts(const OperatorGraph& graph, TensorId tensor);

/// Whether a tensor is a parameter in another type.
bool is_cast_parameter(const OperatorGraph& graph, TensorId tensor);

/// The parameter with two or more dimensions that an operand is, possibly through a cast; nothing if it is none.
std::optional<TensorId> stored_weight(const OperatorGraph& graph, TensorId operand);
/// The same as a tensor of the graph, or null.
const GraphTensor* weight_of(const OperatorGraph& graph, TensorId operand);

/// Whether the operator multiplies an activation by a weight, in floating point: a MatMul, BatchMatMul or Einsum one of whose operands is
/// (possibly through casts) a parameter of two or more dimensions.
bool multiplies_weight(const OperatorGraph& graph, OperatorId op);

/// The tensor that an operand was before a pass put a cast in front of its readers (graph/inserted_casts.h).
TensorId behind_inserted_cast(const OperatorGraph& graph, TensorId operand);

/// By tensor: the floating-point weights that nothing but `products` reads, itself or through an inserted cast, so that
/// their stored type may change.
IdVector<TensorId, char> weights_only_in(const OperatorGraph& graph, const std::vector<OperatorId>& products);

}  // namespace shardplan
