#pragma once

#include <optional>

#include "graph/operator_graph.h"
#include "strategies/enumerate.h"
#include "strategies/strategy.h"

namespace shardplan {

/// For every operator the factor that is the batch, or nothing: the factor by which the first dimension of an input
/// walks through the graph. A weight's gradient sums over it; an update has none. Of a parameter of which every device
/// has its own (graph/per_device.h) it is dimension 0.
IdVector<OperatorId, std::optional<std::uint32_t>> batch_factors(const OperatorGraph& graph);

/// The batch cut over all axes, or over as many of the first ones as divide it; everything else repeated. If `uneven`
/// allows, pieces may be unequal where little of them is padding.
Strategy data_parallel_strategy(const Operation& operation, std::optional<std::uint32_t> batch_factor,
                                const DeviceMesh& mesh, UnevenCuts uneven = UnevenCuts::kNone);
/// All work on every device.
Strategy replicated_strategy(const Operation& operation);

}  // namespace shardplan
