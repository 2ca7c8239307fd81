#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/cluster/cluster_mesh.h"
#include "model/model.h"

namespace shardplan {

/// The mesh of a model on its devices: the user's axes, else the cluster's levels. Throws InputError if they do not
/// fit the devices.
DeviceMesh model_mesh(const Model& model, const Cluster& cluster);

/// Those of `pieces` that together shard a batch the most, in their order.
std::vector<AxisRef> batch_pieces(const std::vector<AxisRef>& pieces, std::int64_t batch, bool allows_uneven);

/// The pieces of a mesh that a search may use. The user's axes are not split, and those of size 1 are left out; the
/// cluster's levels are split as usual (`search_pieces`), unless more pieces of another shape can shard the batch. If
/// the outermost of several levels is larger than the number of pieces the batch allows, it is split in two: on ib=512,
/// nvlink=8 a batch of 768 has the pieces 2, 256 and 8. Else levels are split in other places (`mesh_shapes`): on x=16,
/// y=16 a batch of 64 has the pieces 16, 4 and 4 instead of 16, 2 and 8.
std::vector<AxisRef> model_pieces(const Model& model, const DeviceMesh& mesh, std::int64_t batch);

}  // namespace shardplan
