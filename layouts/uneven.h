#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "layouts/tensor_layout.h"

namespace shardplan {

// A dimension of N positions that n pieces do not divide: each piece is an interval of c = ceil(N / n) positions, the
// last one shorter. Every device's buffer has c positions; those after its interval are padding that nothing may read.
//
//   N   n   c   pieces                            padding of the last
//   10  4   3   [0, 3) [3, 6) [6, 9) [9, 10)      2
//   12  8   2   -                                 pieces 6 and 7 would be empty: refused
//   12  5   3   -                                 piece 4 would be empty: refused
//   15  8   2   [0, 2) ... [14, 15)               1
//
// GSPMD and, as no piece is empty, PyTorch's `chunk` split alike. Only a dimension with a single part may be uneven;
// the product of its axes is one split.

/// ceil(extent / pieces): the extent of every device's buffer.
std::int64_t largest_piece(std::int64_t extent, std::int64_t pieces);

/// [first, second) of one piece.
std::pair<std::int64_t, std::int64_t> piece_bounds(std::int64_t extent, std::int64_t pieces, std::int64_t position);

/// Whether splitting a dimension into `pieces` leaves no piece empty.
bool can_be_split(std::int64_t extent, std::int64_t pieces);

/// Whether each of the `fewer` pieces consists of consecutive whole ones of the `pieces`; `fewer` divides `pieces`. The
/// 4 pieces of 15 are the 8 taken two by two; those of 50257 are not. A single piece always nests. Devices can gather a
/// part of a dimension, or slice it further, from the shards of their group only if the pieces nest.
bool nests(std::int64_t extent, std::int64_t pieces, std::int64_t fewer);

/// Whether some dimension's pieces have unequal sizes.
bool is_uneven(const TensorLayout& layout, const Shape& shape);

/// The number of positions along each dimension that the device at `point` holds, without the padding of its buffer.
Shape held_shape(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::int64_t point);

/// Like `check_layout`, but pieces of a dimension may be unequal if none is empty: "dimension 0 of size 12 cannot be
/// split into 8 by {x}: pieces of 2 would leave 2 of them empty".
std::string check_uneven_layout(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

}  // namespace shardplan
