#pragma once

#include <cstddef>
#include <vector>

#include "layouts/device_mesh.h"

namespace shardplan {

/// The shapes of the mesh that a search tries: all ways to split its axes into `most` pieces in total (or into as
/// many as possible, if the axes cannot be split that far), at least one per axis. Major to minor; the first shape is
/// that of `search_pieces`. On node=8, nvlink=8:
///
///   {node, nvlink:(1)2, nvlink:(2)4}   {node, nvlink:(1)4, nvlink:(4)2}
///   {node:(1)2, node:(2)4, nvlink}     {node:(1)4, node:(4)2, nvlink}
///
/// Shapes with fewer pieces are omitted: a finer one contains all their strategies.
std::vector<std::vector<AxisRef>> mesh_shapes(const DeviceMesh& mesh, std::size_t most = 3);

}  // namespace shardplan
