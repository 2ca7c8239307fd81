#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// Every placement of the given (parts of) axes, each in a dimension at any position, partial or nowhere, that the
/// shape's divisibility allows; in canonical form.
inline std::vector<TensorLayout> all_layouts(const DeviceMesh& mesh, const Shape& shape,
                                             const std::vector<AxisRef>& axes,
                                             const std::vector<Reduction>& reductions) {
  std::vector<TensorLayout> layouts = {TensorLayout::replicated(shape.size())};
  for (const AxisRef& axis : axes) {
    std::vector<TensorLayout> more = layouts;
    for (const TensorLayout& layout : layouts) {
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const std::vector<AxisRef>& cut = layout.dimensions[d].parts[0].axes;
        for (std::size_t position = 0; position <= cut.size(); ++position) {
          TensorLayout next = layout;
          std::vector<AxisRef>& list = next.dimensions[d].parts[0].axes;
          list.insert(list.begin() + static_cast<std::ptrdiff_t>(position), axis);
          if (check_layout(next, mesh, shape).empty()) more.push_back(next);
        }
      }
      for (const Reduction reduction : reductions) {
        if (!layout.partial.empty() && layout.reduction != reduction) continue;
        TensorLayout next = layout;
        next.partial.push_back(axis);
        next.reduction = reduction;
        more.push_back(next);
      }
    }
    layouts = std::move(more);
  }
  for (TensorLayout& layout : layouts) layout = canonical(layout, mesh, shape);
  return layouts;
}

inline std::vector<AxisRef> whole_axes(const DeviceMesh& mesh) {
  std::vector<AxisRef> axes;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) axes.push_back(mesh.whole(i));
  return axes;
}

/// One random layout: axes split into random parts (prime factors in any order), placed in dimensions split into random
/// parts, partial or nowhere.
inline TensorLayout random_layout(const DeviceMesh& mesh, const Shape& shape, Random& random, bool with_sub_axes,
                                  bool with_parts) {
  std::vector<AxisRef> pieces;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i) {
    std::int64_t before = 1;
    std::int64_t rest = mesh.axes()[i].size;
    while (rest > 1) {
      std::int64_t size = rest;
      if (with_sub_axes && random.below(2) == 0) {
        do size = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rest)));
        while (rest % size != 0);
      }
      if (size > 1) pieces.push_back({static_cast<std::uint32_t>(i), before, size});
      before *= size;
      rest /= size;
    }
  }
  TensorLayout layout = TensorLayout::replicated(shape.size());
  for (std::size_t d = 0; with_parts && d < shape.size(); ++d) {
    std::vector<DimensionPart>& parts = layout.dimensions[d].parts;
    std::int64_t rest = shape[d];
    parts.clear();
    while (rest > 1 && parts.size() < 2 && random.below(3) == 0) {
      std::int64_t size = rest;
      do size = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rest)));
      while (rest % size != 0);
      parts.push_back({size, {}});
      rest /= size;
    }
    parts.push_back({parts.empty() ? 0 : rest, {}});
  }
  layout.reduction = static_cast<Reduction>(random.below(3));
  while (!pieces.empty()) {
    const std::size_t i = random.below(pieces.size());
    const AxisRef piece = pieces[i];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i));
    const std::size_t where = random.below(shape.size() + 2);
    TensorLayout next = layout;
    if (where == shape.size() + 1) continue;
    if (where == shape.size()) {
      if (random.below(2) == 0) next.partial.push_back(piece);
    } else {
      std::vector<DimensionPart>& parts = next.dimensions[where].parts;
      parts[random.below(parts.size())].axes.push_back(piece);
    }
    if (check_layout(next, mesh, shape).empty()) layout = next;
  }
  return canonical(layout, mesh, shape);
}

}  // namespace shardplan
