#pragma once

#include <string>

#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// A picture of who holds what: the positions along the tensor's most sharded dimension downwards, those along the next
/// across, and in each cell the ranks that hold the piece. Of [16, 8] as "[{y}, {x}]" on x=2, y=4:
///
///   dim 0 \ dim 1    0-3    4-7
///             0-3      0      4
///             4-7      1      5
///            8-11      2      6
///           12-15      3      7
///
/// Further sharded dimensions are fixed at their first piece, which a line below says; so is what is partial. Empty for
/// a layout that shards nothing, and for one of more pieces than a terminal shows well. Requires a canonical layout.
std::string layout_grid(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::size_t indent);

}  // namespace shardplan
