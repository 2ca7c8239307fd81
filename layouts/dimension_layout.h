#pragma once

#include <cstdint>
#include <vector>

#include "layouts/axis_ref.h"

namespace shardplan {

/// A consecutive factor of one dimension and the pieces that shard it, major to minor.
struct DimensionPart {
  std::int64_t size = 0;  // extent; 0 is allowed for a dimension's only part and means the whole dimension
  std::vector<AxisRef> axes;

  bool operator==(const DimensionPart&) const = default;
};

/// How one dimension is sharded: usually one part. The parts of a dimension are its row-major factors, major to
/// minor: 8 as (2:{}, 4:{x}) is a flattened [2, 4] whose second dimension is sharded.
struct DimensionLayout {
  std::vector<DimensionPart> parts;

  bool is_sharded() const { return num_pieces() > 1; }
  /// The number of pieces.
  std::int64_t num_pieces() const;
  bool operator==(const DimensionLayout&) const = default;
};

}  // namespace shardplan
