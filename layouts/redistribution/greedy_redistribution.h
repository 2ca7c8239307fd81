#pragma once

#include <optional>

#include "layouts/device_mesh.h"
#include "layouts/redistribution/redistribution.h"

namespace shardplan {

/// The sequence that MindSpore would take: dimensions are refined until each has at most one axis on either side, then
/// the steps follow in the greedy order (greedy_order.h). What cannot be refined is gathered to the whole tensor and
/// sliced. Shown for comparison, and used if a search for something better would be too large. Nothing for partial
/// layouts, which MindSpore's inference does not have.
///
/// These are steps on our layouts, with the times of our collectives. MindSpore's own cost of the same order is
/// computed in costmodel/mindspore/mindspore_redistribution.h, which refines MindSpore's layouts as MindSpore does.
std::optional<Redistribution> greedy_redistribution(const TensorLayout& from, const TensorLayout& to,
                                                    const Shape& shape, Bytes element_bytes, const DeviceMesh& mesh,
                                                    const CollectiveCosts& costs);

/// The same for partial layouts too: first all_reduce partial tensors, at the end make partial what should be.
Redistribution greedy_with_partial(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                   Bytes element_bytes, const DeviceMesh& mesh, const CollectiveCosts& costs);

}  // namespace shardplan
