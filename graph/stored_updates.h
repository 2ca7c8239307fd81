#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// Marks the new values that the operators of `forward` give to stored tensors (`GraphTensor::updates`): results with
/// the name of an operand, such as BatchNorm's moving_mean. Without training only operators that write in place do so:
/// moving statistics stay as they are. Throws InputError if another operator reads the stored tensor too, or if
/// something else than a stored tensor is to be overwritten.
void mark_stored_updates(const OperatorGraph& forward, OperatorGraphBuilder& builder, bool in_training);

/// The graph of an inference step, whose operators write in place.
OperatorGraph with_stored_updates(OperatorGraph forward);

/// True for a stored tensor that is written in place, or that attention reads as keys or values and nothing trains: a
/// cache, of whose sequences each device keeps its own under data parallelism, not a copy of all.
bool is_cache(const OperatorGraph& graph, TensorId tensor);

/// The dimension of a cache that numbers the tokens of a sequence.
std::size_t token_dimension(const OperatorGraph& graph, TensorId cache);

}  // namespace shardplan
