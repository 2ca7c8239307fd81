#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "layouts/device_mesh.h"

namespace shardplan {

/// The mesh of a cluster: its levels with a count above 1, outermost first; or the user's axes, whose sizes must
/// multiply to the devices (InputError otherwise).
DeviceMesh make_mesh(const Cluster& cluster);
DeviceMesh make_mesh(const Cluster& cluster, const std::vector<MeshAxis>& axes);

/// What each (part of an) axis spans of the cluster's levels: "pcie", "node x nvlink", ... for printing.
std::vector<std::string> spanned_levels(const Cluster& cluster, const DeviceMesh& mesh, const AxisRef& axis);

/// The mesh's axes cut into the pieces that a search may use: whole axes, the inner ones cut into sub-axes of prime
/// size from the left as long as there are fewer than `most` pieces; major to minor. On nvlink=8 three of 2, on
/// node=8, nvlink=8 the pieces 8, 2 and 4.
std::vector<AxisRef> search_pieces(const DeviceMesh& mesh, std::size_t most = 3);

}  // namespace shardplan
