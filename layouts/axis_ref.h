#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace shardplan {

/// An axis of the mesh, or a part of one: the axis is read as [before, size, rest], and this is the middle digit. The
/// whole axis `y` of size 8 is {1, 1, 8}; Shardy's sub-axis `y:(2)4` is {1, 2, 4}: the four positions along y that the
/// middle digit counts.
///
/// A *piece* of the mesh is an axis or sub-axis that a layout uses as a unit: it shards one dimension, is partial or is
/// unused. The pieces of a list do not overlap; consecutive pieces of a list read as one number, the first being the
/// most major.
///
/// On x=2, y=8 and a=6:
///
///   a        b        overlaps(a, b)   contains(a, b)   is_followed_by(a, b)   joined({a, b})
///   y        y        yes              yes              no                     y, y
///   y        y:(2)2   yes              yes              no                     y, y:(2)2
///   y:(2)2   y        yes              no               no                     y:(2)2, y
///   y:(1)2   y:(2)4   no               no               yes                    y
///   y:(2)4   y:(1)2   no               no               no                     y:(2)4, y:(1)2
///   y:(1)2   y:(4)2   no               no               no                     y:(1)2, y:(4)2
///   y:(1)4   y:(2)4   yes              no               no                     y:(1)4, y:(2)4
///   y:(1)4   y:(2)2   yes              yes              no                     y:(1)4, y:(2)2
///   x        y        no               no               no                     x, y
///   a:(1)2   a:(3)2   yes              no               no                     a:(1)2, a:(3)2   2 x 3 against 3 x 2
///   a:(1)2   a:(1)3   yes              no               no                     a:(1)2, a:(1)3
///   y        y:(2)1   no               yes              no                     y                one position cuts nothing
struct AxisRef {
  std::uint32_t axis = 0;   // position in the mesh
  std::int64_t before = 1;  // product of the digits to the left (more major)
  std::int64_t size = 1;

  /// Product of the digits up to the end of this one: `before` of the digit that follows.
  std::int64_t end() const { return before * size; }
  auto operator<=>(const AxisRef&) const = default;
};

/// False only if both can be used at once, as different digits of one mixed-radix reading of the axis.
bool overlaps(const AxisRef& a, const AxisRef& b);

/// Whether `part` is `whole` or one of its sub-axes.
bool contains(const AxisRef& whole, const AxisRef& part);

/// Whether the two, in this order, are the two halves of one piece.
bool is_followed_by(const AxisRef& major, const AxisRef& minor);

/// Joins consecutive pieces that continue each other and drops those of size 1; the order is kept.
std::vector<AxisRef> joined(const std::vector<AxisRef>& axes);

/// The product of the sizes (1 for an empty list): the number of pieces into which the axes shard a dimension.
std::int64_t num_pieces(const std::vector<AxisRef>& axes);

}  // namespace shardplan
