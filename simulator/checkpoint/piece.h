#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// The positions of a piece along each dimension: ascending intervals (begin, count).
struct PieceRuns {
  struct Run {
    std::int64_t begin = 0;
    std::int64_t count = 0;

    bool operator==(const Run&) const = default;
  };
  std::vector<std::vector<Run>> dimensions;

  Shape shape() const;  // of the piece
  Shape begin() const;  // the first position along each dimension
  bool operator==(const PieceRuns&) const = default;
};
PieceRuns whole_piece(const Shape& shape);
/// The piece of the device at `point`, with its own extents: an uneven dimension's last piece is shorter.
PieceRuns held_piece(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::int64_t point);

/// Calls copy(offset in one piece, offset in the other, elements) for all rows of elements that both hold; offsets are
/// those of row-major pieces. Innermost dimensions that both hold whole are joined into one row.
void for_each_shared_row(const PieceRuns& from, const PieceRuns& to,
                         const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& copy);

}  // namespace shardplan
