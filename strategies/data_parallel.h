#pragma once

#include <optional>
#include <vector>

#include "graph/operator_graph.h"
#include "strategies/enumerate.h"
#include "strategies/strategy.h"

namespace shardplan {

/// The batch sharded over all of these pieces of the mesh, or over those, in their order, that divide it; all other work
/// repeated. If `uneven` allows it, pieces may be unequal where little of them is padding.
Strategy data_parallel_strategy(const Operation& operation, std::optional<std::uint32_t> batch_factor,
                                const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                UnevenCuts uneven = UnevenCuts::kNone);
/// All work on every device.
Strategy replicated_strategy(const Operation& operation);

}  // namespace shardplan
