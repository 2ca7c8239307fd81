#pragma once

#include <optional>

#include "layouts/device_mesh.h"
#include "layouts/redistribution/redistribution.h"

namespace shardplan {

/// The sequence that MindSpore would take: dimensions are refined until each has one axis at most on either side, then
/// the steps follow in the greedy order (greedy_order.h). What cannot be refined is gathered to the whole tensor and
/// sliced. Shown for comparison, and taken where a search is too large to find better. Nothing for partial layouts,
/// which MindSpore's inference does not have.
///
/// These are steps on our layouts, with the times of our collectives. What MindSpore's own cost model believes of the
/// same order is in costmodel/mindspore/mindspore_redistribution.h, which refines MindSpore's layouts as MindSpore does.
std::optional<Redistribution> greedy_redistribution(const TensorLayout& from, const TensorLayout& to,
                                                    const Shape& shape, Bytes element_bytes, const DeviceMesh& mesh,
                                                    const CollectiveCosts& costs);

/// The same for partial layouts too: first all_reduce what is partial, last make partial what becomes so.
Redistribution greedy_with_partial(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                   Bytes element_bytes, const DeviceMesh& mesh, const CollectiveCosts& costs);

}  // namespace shardplan
