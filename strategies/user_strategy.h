#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "base/rare_value.h"
#include "base/shared_vector.h"
#include "graph/operator_graph.h"
#include "strategies/enumerate.h"
#include "strategies/strategy.h"

namespace shardplan {

/// What the user's strategies leave open: for an operator the strategies that agree with them (empty: all do), for a
/// stored tensor or a result its layout.
struct UserStrategies {
  IdVector<OperatorId, SharedVector<Strategy>> operators;
  IdVector<TensorId, RareValue<TensorLayout>> stored;     // inputs, parameters, states
  IdVector<TensorId, RareValue<TensorLayout>> requested;  // results with an out_strategy
};

/// Interprets the strategy entries of the model file on a mesh. A tuple means what MindSpore's device matrix makes of
/// it: the splits of the operator's dimensions, in the order of its factors, take consecutive pieces of the row-major
/// ranks, repeated calculation last. Factors that no entry decides are enumerated over the remaining `pieces`.
///
/// Throws InputError with all errors: wrong count, wrong rank, a size that the number of pieces does not divide, more
/// devices than there are, tensors that shard one factor in two ways, and violated conditions of the operator. If
/// `uneven` allows it, the number of pieces need not divide a size, but no piece may be empty.
UserStrategies resolve_user_strategies(const OperatorGraph& graph, const DeviceMesh& mesh,
                                       const std::vector<AxisRef>& pieces, UnevenCuts uneven = UnevenCuts::kNone);

}  // namespace shardplan
