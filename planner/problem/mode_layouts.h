#pragma once

#include "graph/tensor_versions.h"
#include "strategies/user_strategy.h"

namespace shardplan {

/// The layouts of versions that follow from decisions. If all readers are decided and take a version in the same
/// layout, it is held in that layout, except where the user decides otherwise (`TensorVersion::Keeping`). An output
/// has the layout in which its operator leaves it, or is complete if that is a partial sum. `reshard_after_forward`:
/// a sharded parameter is also sharded between the forward and the backward pass, and so is its cast to another type.
IdVector<VersionId, RareValue<TensorLayout>> layouts_by_mode(const UserStrategies& decided,
                                                             const IdVector<OperatorId, char>& is_decided,
                                                             const OperatorGraph& graph, const TensorVersions& versions,
                                                             const DeviceMesh& mesh, bool reshard_after_forward);

}  // namespace shardplan
