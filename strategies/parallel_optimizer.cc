#include "strategies/parallel_optimizer.h"

#include <algorithm>
#include <span>

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

/// The pieces of the mesh that shard no dimension of `layout`: over them devices hold the same.
std::vector<AxisRef> unused(const TensorLayout& layout, const std::vector<AxisRef>& pieces) {
  std::vector<AxisRef> repeats;
  for (const AxisRef& piece : pieces) {
    if (!is_sharded_by(layout, piece)) repeats.push_back(piece);
  }
  return repeats;
}

/// Cuts `dimension` of `layout` further by `axes`; false if that is no layout of `shape`.
bool cut_further(TensorLayout& layout, std::size_t dimension, std::span<const AxisRef> axes, const Shape& shape,
                 const DeviceMesh& mesh, bool uneven) {
  DimensionLayout& cut = layout.dimensions[dimension];
  if (cut.parts.size() > 1) return false;
  cut.parts[0].axes.insert(cut.parts[0].axes.end(), axes.begin(), axes.end());
  if (!uneven && shape[dimension] % cut.num_pieces() != 0) return false;
  return check_uneven_layout(layout, mesh, shape).empty();
}

/// Of the layouts that shard a given number of dimensions further, the one with the smallest shard; of equal ones the
/// first by dimensions, with as many axes as possible in the first of them.
struct SmallestCut {
  const Shape& shape;
  const DeviceMesh& mesh;
  bool uneven = false;
  std::optional<TensorLayout> layout{};
  std::int64_t elements = 0;

  void search(const TensorLayout& start, std::span<const AxisRef> axes, int dimensions, std::size_t is_cut = 0) {
    for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) {
      if ((is_cut >> dimension & 1) != 0) continue;
      const std::size_t most = axes.size() - static_cast<std::size_t>(dimensions - 1);
      const std::size_t least = dimensions == 1 ? most : 1;
      for (std::size_t count = most + 1; count-- > least;) {
        TensorLayout next = start;
        if (!cut_further(next, dimension, axes.first(count), shape, mesh, uneven)) continue;
        if (dimensions > 1) {
          search(next, axes.subspan(count), dimensions - 1, is_cut | std::size_t{1} << dimension);
        } else {
          offer(next);
        }
      }
    }
  }
  void offer(const TensorLayout& candidate) {
    const std::int64_t held = num_elements(local_shape(candidate, shape));
    if (layout && elements <= held) return;
    layout = candidate;
    elements = held;
  }
};

constexpr int kMostCutDimensions = 3;

}  // namespace

std::optional<TensorLayout> zero_layout(const TensorLayout& layout, const Shape& shape, const DeviceMesh& mesh,
                                        const std::vector<AxisRef>& pieces, bool uneven) {
  const std::vector<AxisRef> axes = unused(layout, pieces);
  const double flat =
      static_cast<double>(num_elements(local_shape(layout, shape))) / static_cast<double>(num_pieces(axes));
  SmallestCut best{shape, mesh, uneven};
  for (int dimensions = 1; dimensions <= kMostCutDimensions; ++dimensions) {
    if (dimensions > 1 && axes.size() < static_cast<std::size_t>(dimensions)) break;
    if (best.layout && static_cast<double>(best.elements) <= 1.1 * flat) break;
    SmallestCut more{shape, mesh, uneven};
    more.search(layout, axes, dimensions);
    if (!more.layout) continue;
    if (!best.layout || static_cast<double>(more.elements) < 0.9 * static_cast<double>(best.elements)) {
      best.layout = more.layout;
      best.elements = more.elements;
    }
  }
  if (!best.layout) return std::nullopt;
  return canonical(*best.layout, mesh, shape);
}

IdVector<TensorId, RareValue<TensorLayout>> parallel_optimizer_states(
    const OperatorGraph& graph, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
    const IdVector<TensorId, RareValue<TensorLayout>>& stored, std::vector<TensorId>* whole) {
  IdVector<TensorId, RareValue<TensorLayout>> layouts(graph.tensors().size());
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& state = graph.tensor(id);
    if (!state.state_of || state.type.shape.empty()) continue;
    const TensorId parameter = *state.state_of;
    if (!graph.tensor(parameter).parallel_optimizer) continue;
    if (graph.tensor(parameter).type.shape != state.type.shape) continue;
    const TensorLayout layout = stored[parameter].value_or(TensorLayout::replicated(state.type.shape.size()));
    TensorLayout cut = layout;
    if (cut_further(cut, 0, unused(layout, pieces), state.type.shape, mesh, false)) {
      layouts[id] = canonical(cut, mesh, state.type.shape);
    } else if (whole != nullptr && std::ranges::find(*whole, parameter) == whole->end()) {
      whole->push_back(parameter);
    }
  }
  return layouts;
}

}  // namespace shardplan
