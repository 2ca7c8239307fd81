#pragma once

#include <vector>

#include "layouts/redistribution/cross_mesh.h"
#include "simulator/execute/collectives.h"

namespace shardplan {

/// Runs sends between two meshes on simulated memories: every receiver's shard is made of what it was sent and of
/// nothing else; what is sent is read from the sender's memory. Buffers are float64, whatever the dtype, by point of
/// their mesh. Members of a sum that are sent nothing hold zeros.
DeviceBuffers apply(const std::vector<BoxSend>& sends, const TensorLayout& from, const DeviceMesh& from_mesh,
                    const TensorLayout& to, const DeviceMesh& to_mesh, const Shape& shape,
                    const DeviceBuffers& buffers);

}  // namespace shardplan
