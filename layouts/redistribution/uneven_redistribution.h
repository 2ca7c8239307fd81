#pragma once

#include <vector>

#include "base/units.h"
#include "layouts/collective.h"
#include "layouts/device_mesh.h"
#include "layouts/redistribution/redistribution.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The cheapest sequence of collectives between two canonical layouts of which at least one is uneven
/// (layouts/uneven.h), among those that it can carry: a step may gather or slice a dimension only where the larger pieces
/// are rows of whole smaller ones (`nests`), and all of a dimension always. A gather trims the padding, a scatter adds it;
/// costs and memory are those of the padded buffers. With `bounded_memory` no shard on the way is larger than the larger
/// end's wherever such a sequence exists, else the largest is as small as possible.
///
/// A dimension that is several parts in one of the ends is gathered or sliced as a whole. `pieces`: those into which the search
/// cuts the mesh where both ends are made of them.
Redistribution uneven_redistribution(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                     Bytes element_bytes, const DeviceMesh& mesh, const CollectiveCosts& costs,
                                     bool bounded_memory, const std::vector<AxisRef>& pieces = {});

}  // namespace shardplan
