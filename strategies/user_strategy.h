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

/// What the user's strategies leave to choose: for an operator the strategies that agree with them (empty: all do), for a
/// stored tensor or a result its layout.
struct UserStrategies {
  IdVector<OperatorId, SharedVector<Strategy>> operators;
  IdVector<TensorId, RareValue<TensorLayout>> stored;     // inputs, parameters, states
  IdVector<TensorId, RareValue<TensorLayout>> requested;  // results with an out_strategy
};

/// Gives the entries of the model file their meaning on a mesh. A tuple is what MindSpore's device matrix makes of it:
/// the cuts of the operator's dimensions, in the order of its factors, take consecutive pieces of the row-major ranks,
/// repeated calculation last. Factors that no entry decides are enumerated over the `pieces` left.
///
/// Throws InputError with all faults found: wrong count, wrong rank, a size that the cut does not divide, more devices
/// than there are, tensors that cut one factor in two ways, and the operator's own conditions. If `uneven` allows it, a cut
/// need not divide a size, but leave no piece empty.
UserStrategies resolve_user_strategies(const OperatorGraph& graph, const DeviceMesh& mesh,
                                       const std::vector<AxisRef>& pieces, UnevenCuts uneven = UnevenCuts::kNone);

}  // namespace shardplan
