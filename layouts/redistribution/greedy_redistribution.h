#pragma once

#include <optional>

#include "layouts/device_mesh.h"
#include "layouts/redistribution/redistribution.h"

namespace shardplan {

/// The sequence that MindSpore's operator inference would take (redistribution_operator_infer.cc): dimensions are
/// refined until each has one axis at most on either side; then, in rounds, slice what can be sliced, all_to_all what
/// another dimension holds, gather what is wanted nowhere; where axes wait for each other in a circle, gather the
/// first. What cannot be refined is gathered to the whole tensor and sliced. Shown for comparison, and taken where a
/// search is too large to find better. Nothing for partial layouts, which MindSpore's inference does not have.
std::optional<Redistribution> greedy_redistribution(const TensorLayout& from, const TensorLayout& to,
                                                    const Shape& shape, Bytes element_bytes, const DeviceMesh& mesh,
                                                    const CollectiveCosts& costs);

/// The same for partial layouts too: first all_reduce what is partial, last make partial what becomes so.
Redistribution greedy_with_partial(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                   Bytes element_bytes, const DeviceMesh& mesh, const CollectiveCosts& costs);

}  // namespace shardplan
