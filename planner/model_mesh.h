#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/cluster/cluster_mesh.h"
#include "graph/operator_graph.h"
#include "model/model.h"

namespace shardplan {

/// The mesh of a model on its devices: the user's axes, else the cluster's levels. Throws InputError: they do not fit the
/// devices.
DeviceMesh model_mesh(const Model& model, const Cluster& cluster);

/// The size of a graph's batch, of one micro-batch; 1: it has none.
std::int64_t batch_size(const OperatorGraph& graph);

/// The pieces of a mesh that a search may use. A user's axes stay whole; the cluster's levels may be cut
/// (`search_pieces`). Where the outermost of several levels is more than the batch can be cut in, it is cut so that more of it
/// can cut the batch: on ib=512, nvlink=8 a batch of 768 has the pieces 2, 256 and 8.
std::vector<AxisRef> model_pieces(const Model& model, const DeviceMesh& mesh, std::int64_t batch);

}  // namespace shardplan
