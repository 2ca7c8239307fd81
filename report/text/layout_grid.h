#pragma once

#include <string>

#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// A picture of the ranks that hold each piece: the positions along the most sharded dimension downwards, those along
/// the second most across, and in each cell the ranks that hold the piece. For [16, 8] as "[{y}, {x}]" on x=2, y=4:
///
///   dim 0 \ dim 1    0-3    4-7
///             0-3      0      4
///             4-7      1      5
///            8-11      2      6
///           12-15      3      7
///
/// Further sharded dimensions are fixed at their first piece; a line below says so and names partial axes. Empty for a
/// layout that shards nothing, and for one with too many pieces for a terminal. Requires a canonical layout.
std::string layout_grid(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::size_t indent);

}  // namespace shardplan
