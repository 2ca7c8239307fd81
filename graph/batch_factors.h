#pragma once

#include <cstdint>
#include <optional>

#include "graph/operator_graph.h"

namespace shardplan {

/// Where the batch is: the factor by which the first dimension of an input walks through a graph.
struct BatchFactors {
  /// By operator; nothing where it has none. A weight's gradient sums over it; an update has none. An operator that reads
  /// only what every device has its own of (graph/per_device.h) has dimension 0 of that.
  IdVector<OperatorId, std::optional<std::uint32_t>> factors;
  /// By tensor: its first dimension is the batch.
  IdVector<TensorId, char> has_batch;
};
BatchFactors find_batch(const OperatorGraph& graph);

/// The factor that the first dimension walks first (of a compound dimension the major one), if any.
std::optional<std::uint32_t> leading_factor(const TensorWalk& walk);

}  // namespace shardplan
