#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_vector.h"
#include "layouts/device_mesh.h"
#include "layouts/dimension_layout.h"
#include "layouts/shape.h"

namespace shardplan {

enum class Reduction : std::uint8_t { kSum, kMax, kMin };
std::string_view to_string(Reduction reduction);

/// How one tensor is laid out over a `DeviceMesh`. For a tensor of shape [8, 6] on the mesh x=2, y=4:
///   "[{x}, {}]"                  rows in 2 pieces over x, replicated over y local shape [4, 6]
///   "[{x, y}, {}]"               rows in 8 pieces, x major                  local shape [1, 6]
///   "[{}, {}] unreduced={x}"     every device holds one summand over x      local shape [8, 6]
///   "[(2:{}, 4:{x}), {}]"        rows 0,1,4,5 or 2,3,6,7                    local shape [4, 6]
/// Invariant (`check_layout`): axes are disjoint; every part is divisible by its axes. Logs, tests and files use the
/// text; `parse_layout` inverts `to_string`. Compare layouts only in canonical form.
struct TensorLayout {
  SharedVector<DimensionLayout> dimensions;
  SharedVector<AxisRef> partial;          // in mesh order when canonical
  Reduction reduction = Reduction::kSum;  // meaningful if `partial` is not empty

  /// Nothing sharded, nothing partial.
  static TensorLayout replicated(std::size_t rank);
  bool is_replicated() const;
  bool operator==(const TensorLayout&) const = default;
};

/// The canonical form of all layouts that place the same elements on the same devices: axes of size 1 are dropped,
/// consecutive sub-axes of one axis joined, parts joined where one list of axes can express them, `partial` sorted
/// and joined. Two layouts place elements alike exactly if their canonical forms are equal.
TensorLayout canonical(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

/// Empty, or the error: "dimension 1 of size 10 cannot be split into 8 by {x, y}", an axis used twice, the wrong rank,
/// ...
std::string check_layout(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

/// The part of `check_layout` that needs no shape: axes exist and are used at most once.
std::string check_axes(const TensorLayout& layout, const DeviceMesh& mesh);

/// The extents of one device's shard.
Shape local_shape(const TensorLayout& layout, const Shape& shape);

/// The number of pieces into which the layout splits a tensor: a shard is the tensor divided by this number.
std::int64_t num_shards(const TensorLayout& layout);

/// Reads Shardy's notation, with or without quotes around the axes; throws InputError that says what was found and what
/// is expected. `?` and priorities are accepted and dropped; `note`, if given, then receives a line that says so. A
/// layout that is partial over maxima is written "[{x}, {}] unreduced={y} unreduced_kind=max".
TensorLayout parse_layout(std::string_view text, const DeviceMesh& mesh, std::string* note = nullptr);
std::string to_string(const TensorLayout& layout, const DeviceMesh& mesh);

/// The positions along each dimension that the device at `point` holds: one ascending list per dimension.
std::vector<std::vector<std::int64_t>> held_indices(const TensorLayout& layout, const DeviceMesh& mesh,
                                                    const Shape& shape, std::int64_t point);

}  // namespace shardplan

template <>
struct std::hash<shardplan::TensorLayout> {
  std::size_t operator()(const shardplan::TensorLayout& layout) const noexcept;
};
