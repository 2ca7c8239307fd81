#pragma once

#include <vector>

#include "model/model.h"
#include "strategies/user_strategy.h"

namespace shardplan {

/// What is decided before a search begins: the user's own strategies, and where the user wrote none
///   parallel_mode stand_alone                         all work on every device
///   data_parallel, semi_auto_parallel, or a block     the batch of forward operators cut over all devices
///     of mode data_parallel
///   enable_parallel_optimizer                         optimizer states in pieces (strategies/parallel_optimizer.h)
///   full_batch                                        inputs whole on every device
/// Everything else stays open. Throws InputError with all faults of the user's strategies.
UserStrategies decided_strategies(const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                                  const std::vector<AxisRef>& pieces);

}  // namespace shardplan
