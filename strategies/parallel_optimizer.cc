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

/// `layout` with one dimension cut further over all of `pieces` that cut none; nothing if that is no layout of `shape`.
std::optional<TensorLayout> cut_further(TensorLayout layout, std::size_t dimension, const Shape& shape,
                                        const DeviceMesh& mesh, const std::vector<AxisRef>& pieces, bool uneven) {
  std::vector<AxisRef> repeats;
  for (const AxisRef& piece : pieces) {
    if (!is_sharded_by(layout, piece)) repeats.push_back(piece);
  }
  DimensionLayout& cut = layout.dimensions[dimension];
  if (cut.parts.size() > 1) return std::nullopt;
  std::vector<AxisRef>& axes = cut.parts[0].axes;
  axes.insert(axes.end(), repeats.begin(), repeats.end());
  if (!uneven && shape[dimension] % cut.num_pieces() != 0) return std::nullopt;
  if (!check_uneven_layout(layout, mesh, shape).empty()) return std::nullopt;
  return canonical(layout, mesh, shape);
}

}  // namespace

std::optional<TensorLayout> zero_layout(const TensorLayout& layout, const Shape& shape, const DeviceMesh& mesh,
                                        const std::vector<AxisRef>& pieces, bool uneven) {
  for (const bool is_uneven : {false, true}) {
    if (is_uneven && !uneven) break;
    for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) {
      if (auto found = cut_further(layout, dimension, shape, mesh, pieces, is_uneven)) return found;
    }
  }
  return std::nullopt;
}

IdVector<TensorId, RareValue<TensorLayout>> parallel_optimizer_states(
    const OperatorGraph& graph, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
    const IdVector<TensorId, RareValue<TensorLayout>>& stored) {
  IdVector<TensorId, RareValue<TensorLayout>> layouts(graph.tensors().size());
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& state = graph.tensor(id);
    if (!state.state_of || state.type.shape.empty()) continue;
    const TensorId parameter = *state.state_of;
    if (!graph.tensor(parameter).parallel_optimizer) continue;
    if (graph.tensor(parameter).type.shape != state.type.shape) continue;
    const TensorLayout layout = stored[parameter].value_or(TensorLayout::replicated(state.type.shape.size()));
    layouts[id] = cut_further(layout, 0, state.type.shape, mesh, pieces, false);
  }
  return layouts;
}

}  // namespace shardplan
