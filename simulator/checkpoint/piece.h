#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// The positions along each dimension that a piece holds: ascending intervals (begin, count).
struct PieceRuns {
  struct Run {
    std::int64_t begin = 0;
    std::int64_t count = 0;

    bool operator==(const Run&) const = default;
  };
  std::vector<std::vector<Run>> dimensions;

  Shape shape() const;  // of the piece
  Shape begin() const;  // its first position along each dimension
  bool operator==(const PieceRuns&) const = default;
};
PieceRuns whole_piece(const Shape& shape);
/// What the device at `point` holds. Its extents are those of its own part: an uneven dimension's last piece is shorter.
PieceRuns held_piece(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::int64_t point);

/// Calls copy(offset in one piece, offset in the other, elements) for all rows of elements that both hold, offsets being
/// those of row-major pieces. Innermost dimensions that both hold whole are one row.
void for_each_shared_row(const PieceRuns& from, const PieceRuns& to,
                         const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& copy);

}  // namespace shardplan
