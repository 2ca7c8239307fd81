#pragma once

#include <vector>

#include "costmodel/cluster/cluster_mesh.h"
#include "model/model.h"

namespace shardplan {

/// The mesh of a model on its devices: the user's axes, else the cluster's levels. Throws InputError: they do not fit the
/// devices.
DeviceMesh model_mesh(const Model& model, const Cluster& cluster);

/// The pieces of it that a search may use. A user's axes stay whole; the cluster's levels may be cut.
std::vector<AxisRef> model_pieces(const Model& model, const DeviceMesh& mesh);

}  // namespace shardplan
