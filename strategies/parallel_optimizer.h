#pragma once

#include <vector>

#include "base/rare_value.h"
#include "graph/operator_graph.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// MindSpore's enable_parallel_optimizer: the layout of every optimizer state whose parameter allows it. A state is
/// sharded as the user stores its parameter (`stored`; by default replicated), and its dimension 0 further over all
/// `pieces` of the mesh that hold the same part: for a replicated parameter on x=2, y=4 that is "[{x, y}, {}]".
/// Nothing if they do not divide dimension 0, as in MindSpore (whose limit of 64 KB is not applied). How the
/// parameter is stored stays open: replicated (ZeRO-1), or sharded and gathered at use (ZeRO-3). `whole` receives the
/// parameters that allow it, but whose dimension 0 cannot be sharded so.
IdVector<TensorId, RareValue<TensorLayout>> parallel_optimizer_states(
    const OperatorGraph& graph, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
    const IdVector<TensorId, RareValue<TensorLayout>>& stored, std::vector<TensorId>* whole = nullptr);

/// ZeRO's layout: `layout` further sharded over all `pieces` of the mesh that it leaves, along the dimension with the
/// smallest resulting pieces, the first at a tie. If that wastes more than a tenth, along two or three dimensions,
/// each by the next of the pieces, if that saves a tenth. A dimension is sharded into unequal pieces only with
/// `uneven`. Nothing if it cannot be sharded this way.
std::optional<TensorLayout> zero_layout(const TensorLayout& layout, const Shape& shape, const DeviceMesh& mesh,
                                        const std::vector<AxisRef>& pieces, bool uneven);

}  // namespace shardplan
