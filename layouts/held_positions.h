#pragma once

#include <cstdint>
#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// The positions along one dimension that one device holds, in ascending order but without a list of them, because a
/// dimension can have a hundred million. `held_indices` lists the same. Of a dimension of 24, with x=3, the device at
/// x=1 holds
///
///   {x}               8 to 15              from 8: 8 by 1
///   (2:{}, 12:{x})    4 to 7, 16 to 19     from 4: 2 by 12, of each 4 by 1
class HeldPositions {
 public:
  HeldPositions(const DimensionLayout& dimension, const DeviceMesh& mesh, std::int64_t extent, std::int64_t point);

  std::int64_t size() const { return size_; }
  /// Requires 0 <= i < size().
  std::int64_t operator[](std::int64_t i) const;
  /// How many are smaller than `position`: its place, if it is held.
  std::int64_t num_before(std::int64_t position) const;
  /// All of them are intervals of this length (the last may be shorter) with gaps in between.
  std::int64_t interval_length() const;
  /// The distance from [i - 1] to [i] depends only on which of these numbers divide i: 4 and 1 in the second example.
  std::vector<std::int64_t> block_sizes() const;

 private:
  struct Run {
    std::int64_t count = 1;
    std::int64_t stride = 1;
  };
  std::int64_t begin_ = 0;
  std::vector<Run> runs_;  // outermost first; each repeats those behind it
  std::int64_t size_ = 0;
};

}  // namespace shardplan
