#pragma once

#include <vector>

#include "layouts/redistribution/cross_mesh.h"
#include "simulator/execute/collectives.h"

namespace shardplan {

/// Runs sends between two meshes on simulated memories: every receiver's shard consists only of elements sent to it,
/// which are read from the sender's memory. Buffers are float64, whatever the dtype, by point of their mesh. Members of
/// a sum that receive nothing hold zeros.
DeviceBuffers apply(const std::vector<BoxSend>& sends, const TensorLayout& from, const DeviceMesh& from_mesh,
                    const TensorLayout& to, const DeviceMesh& to_mesh, const Shape& shape,
                    const DeviceBuffers& buffers);

}  // namespace shardplan
