#pragma once

#include <cstdint>
#include <optional>

#include "graph/operator_graph.h"

namespace shardplan {

/// The batch in a graph: the factor that indexes the first dimension of an input, followed through all operators, also
/// where it moves to another dimension (as of groups of tokens, which are dispatched to [experts, groups, slots, width]).
/// If the first input and all others of two or more dimensions begin with one of size 1 (tokens [1, S]), that is the
/// batch, which no factor indexes, and other inputs of one dimension (positions [S]) have none.
struct BatchFactors {
  /// By operator; nothing if it has none. A weight's gradient sums over the batch; an update has none. For an operator
  /// that reads only values that are separate on each device (graph/per_device.h) the factor indexes their pieces.
  IdVector<OperatorId, std::optional<std::uint32_t>> factors;
  /// By tensor: whether its first dimension is the batch.
  IdVector<TensorId, char> has_batch;
  /// By tensor: whether it is computed from a batch of 1. All zero with any other batch.
  IdVector<TensorId, char> is_of_one;
};
BatchFactors find_batch(const OperatorGraph& graph);
/// The batch size of a graph (of one micro-batch); 1 if it has no batch.
std::int64_t batch_size(const OperatorGraph& graph);

/// The first factor that a dimension walks (the major one of a compound dimension), if any.
std::optional<std::uint32_t> leading_factor(const TensorWalk& walk, std::size_t dimension = 0);
/// The dimension of which this is the first factor, if any.
std::optional<std::uint8_t> led_dimension(const TensorWalk& walk, std::uint32_t factor);

}  // namespace shardplan
