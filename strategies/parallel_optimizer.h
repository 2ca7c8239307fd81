#pragma once

#include <vector>

#include "base/rare_value.h"
#include "graph/operator_graph.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// MindSpore's enable_parallel_optimizer: the layout of every optimizer state whose parameter allows it. A state is cut
/// as the user stores its parameter (`stored`; elsewhere whole), and its dimension 0 further over all `pieces` of the
/// mesh that hold the same part: for a parameter stored whole on x=2, y=4 that is "[{x, y}, {}]". Nothing where they do
/// not divide dimension 0, as in MindSpore, whose limit of 64 KB is not kept. How the parameter is stored stays open:
/// whole (ZeRO-1) or in pieces, gathered at use (ZeRO-3).
IdVector<TensorId, RareValue<TensorLayout>> parallel_optimizer_states(
    const OperatorGraph& graph, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
    const IdVector<TensorId, RareValue<TensorLayout>>& stored);

/// ZeRO's: `layout` cut further over all `pieces` of the mesh that it leaves, along the dimension that makes the smallest
/// pieces, the first of equal ones; where that wastes more than a tenth, along two dimensions or three, each by the next of
/// the pieces, if that saves a tenth. A dimension is cut in unequal pieces only with `uneven`. Nothing: it cannot be cut so.
std::optional<TensorLayout> zero_layout(const TensorLayout& layout, const Shape& shape, const DeviceMesh& mesh,
                                        const std::vector<AxisRef>& pieces, bool uneven);

}  // namespace shardplan
