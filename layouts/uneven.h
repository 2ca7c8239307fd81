#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "layouts/tensor_layout.h"

namespace shardplan {

// A dimension of N positions that n pieces do not divide: each piece is an interval of c = ceil(N / n) positions, the last
// one shorter; every device's buffer has c, and what lies behind its interval is padding that nothing may read.
//
//   N   n   c   pieces                            padding of the last
//   10  4   3   [0, 3) [3, 6) [6, 9) [9, 10)      2
//   12  8   2   -                                 pieces 6 and 7 would be empty: refused
//   12  5   3   -                                 piece 4 would be empty: refused
//   15  8   2   [0, 2) ... [14, 15)               1
//
// These are the pieces of GSPMD and, as no piece is empty, of PyTorch's `chunk`. Only a dimension that is one part may be
// uneven, over the product of its axes as one split.

/// ceil(extent / pieces): what every device's buffer holds.
std::int64_t largest_piece(std::int64_t extent, std::int64_t pieces);

/// [first, second) of one piece.
std::pair<std::int64_t, std::int64_t> piece_bounds(std::int64_t extent, std::int64_t pieces, std::int64_t position);

/// Whether n pieces of a dimension leave none empty.
bool can_be_split(std::int64_t extent, std::int64_t pieces);

/// Whether each of `fewer` pieces is a row of whole ones of `pieces`, of which `fewer` is a divisor: 4 pieces of 15 are
/// those of 8 two by two, 4 of 50257 are not. One piece always is. Only then can devices gather a part of a dimension,
/// or slice it further, from what their group holds.
bool nests(std::int64_t extent, std::int64_t pieces, std::int64_t fewer);

/// Whether some dimension's pieces have unequal sizes.
bool is_uneven(const TensorLayout& layout, const Shape& shape);

/// How many positions along each dimension the device at `point` holds: its buffer's without the padding.
Shape held_shape(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::int64_t point);

/// As `check_layout`, but pieces of a dimension may be unequal if none is empty: "dimension 0 of size 12 cannot be cut
/// in 8 by {x}: pieces of 2 would leave 2 of them empty".
std::string check_uneven_layout(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

}  // namespace shardplan
