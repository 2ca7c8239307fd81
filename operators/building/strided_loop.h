#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// Elements between neighbours along each dimension of a row-major tensor.
inline Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// Strides of a tensor of `shape` that follows the points of `extents`, right-aligned; 0 where it is broadcast.
inline Shape broadcast_strides(const Shape& shape, const Shape& extents) {
  const Shape own = row_major_strides(shape);
  Shape strides(extents.size(), 0);
  const std::size_t skipped = extents.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) strides[skipped + d] = shape[d] == 1 ? 0 : own[d];
  return strides;
}

/// Calls `body(offsets)` for every point of `extents`, row-major, with the offset of the point in each of N tensors.
template <std::size_t N, class Body>
void for_each_point(const Shape& extents, const std::array<Shape, N>& strides, Body body) {
  for (const std::int64_t extent : extents) {
    if (extent == 0) return;
  }
  std::array<std::int64_t, N> offsets{};
  if (extents.empty()) {
    body(offsets);
    return;
  }
  const std::size_t last = extents.size() - 1;
  Shape point(extents.size(), 0);
  while (true) {
    std::array<std::int64_t, N> inner = offsets;
    for (std::int64_t i = 0; i < extents[last]; ++i) {
      body(inner);
      for (std::size_t t = 0; t < N; ++t) inner[t] += strides[t][last];
    }
    std::size_t d = last;
    while (d > 0) {
      --d;
      ++point[d];
      for (std::size_t t = 0; t < N; ++t) offsets[t] += strides[t][d];
      if (point[d] < extents[d]) break;
      for (std::size_t t = 0; t < N; ++t) offsets[t] -= strides[t][d] * extents[d];
      point[d] = 0;
      if (d == 0) return;
    }
    if (last == 0) return;
  }
}

/// A tensor seen as [outer, size, inner] around one dimension.
struct AroundAxis {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;

  AroundAxis(const Shape& shape, std::size_t axis) : size(shape[axis]) {
    for (std::size_t d = 0; d < axis; ++d) outer *= shape[d];
    for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  }
};

}  // namespace shardplan
