#include "strategies/parallel_optimizer.h"

#include <algorithm>

#include "layouts/uneven.h"

namespace shardplan {
namespace {

bool is_sharded_by(const TensorLayout& layout, const AxisRef& piece) {
  return std::ranges::any_of(layout.dimensions, [&](const DimensionLayout& dimension) {
    return std::ranges::any_of(dimension.parts, [&](const DimensionPart& part) {
      return std::ranges::any_of(part.axes, [&](const AxisRef& axis) { return overlaps(axis, piece); });
    });
  });
}

}  // namespace

IdVector<TensorId, std::optional<TensorLayout>> parallel_optimizer_states(
    const OperatorGraph& graph, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
    const IdVector<TensorId, std::optional<TensorLayout>>& stored) {
  IdVector<TensorId, std::optional<TensorLayout>> layouts(graph.tensors().size());
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& state = graph.tensor(id);
    if (!state.state_of || state.type.shape.empty()) continue;
    const TensorId parameter = *state.state_of;
    if (!graph.tensor(parameter).parallel_optimizer) continue;
    if (graph.tensor(parameter).type.shape != state.type.shape) continue;
    TensorLayout layout = stored[parameter].value_or(TensorLayout::replicated(state.type.shape.size()));
    std::vector<AxisRef> repeats;
    for (const AxisRef& piece : pieces) {
      if (!is_sharded_by(layout, piece)) repeats.push_back(piece);
    }
    DimensionLayout& rows = layout.dimensions[0];
    if (rows.parts.size() > 1) continue;
    std::vector<AxisRef>& axes = rows.parts[0].axes;
    axes.insert(axes.end(), repeats.begin(), repeats.end());
    const bool are_rows_equal = state.type.shape[0] % rows.num_pieces() == 0;
    if (are_rows_equal && check_uneven_layout(layout, mesh, state.type.shape).empty()) {
      layouts[id] = canonical(layout, mesh, state.type.shape);
    }
  }
  return layouts;
}

}  // namespace shardplan
