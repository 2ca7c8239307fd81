#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/dimension_layout.h"

namespace shardplan {

/// One digit of an index along a dimension, written in mixed radix: its value is either the device's coordinate along
/// `axis`, or (without an axis) takes all values on each device. A dimension of 24 with the layout (2:{}, 12:{x}) and
/// x=3 has the digits 2, x=3, 4.
///
/// The digits are the *meaning* of a layout: two layouts place elements alike exactly if their joined digits are equal.
/// Refinement, reshapes and canonical forms are simple operations on lists of digits.
struct IndexDigit {
  std::int64_t size = 1;
  std::optional<AxisRef> axis;

  bool operator==(const IndexDigit&) const = default;
};

/// The digits of one dimension of size `extent`, major to minor, joined: no digit of size 1, no two neighbours without
/// an axis, no two neighbours that are consecutive parts of one axis. Requires a layout that passes `check_layout`.
std::vector<IndexDigit> index_digits(const DimensionLayout& dimension, std::int64_t extent);

/// Drops digits of size 1 and joins neighbours as described above.
std::vector<IndexDigit> joined(const std::vector<IndexDigit>& digits);

/// The inverse of `index_digits`: each digit without an axis ends a part. A dimension's only part gets size 0.
DimensionLayout dimension_of_digits(const std::vector<IndexDigit>& digits);

}  // namespace shardplan
