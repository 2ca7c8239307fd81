#pragma once

#include <cstdint>
#include <vector>

#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The place of every element of a tensor under one layout, dimension by dimension, so that a simulated collective
/// looks up elements instead of computing digits for each. Offsets are in the float64 buffers of collectives.h.
class ShardIndex {
 public:
  ShardIndex(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

  std::int64_t num_shards() const { return num_shards_; }
  /// The elements of a buffer, including the padding of uneven dimensions.
  std::int64_t shard_size() const { return shard_size_; }
  /// The shard that the device at `point` holds.
  std::int64_t shard(std::int64_t point) const { return shards_[static_cast<std::size_t>(point)]; }
  /// The positions along a dimension that a shard holds, ascending.
  const std::vector<std::int64_t>& held(std::int64_t shard, std::size_t dimension) const;

  /// A sum over dimensions, to which an element's position along each contributes.
  struct Place {
    std::int64_t shard = 0;
    std::int64_t offset = 0;  // in the shard
  };
  const Place& place(std::size_t dimension, std::int64_t position) const {
    return dimensions_[dimension].places[static_cast<std::size_t>(position)];
  }
  std::size_t rank() const { return dimensions_.size(); }

 private:
  struct Dimension {
    std::int64_t num_pieces = 1;
    std::int64_t shard_stride = 1;                // between two shard numbers
    std::vector<std::vector<std::int64_t>> held;  // by piece
    std::vector<Place> places;                    // by position
  };
  std::vector<Dimension> dimensions_;
  std::int64_t num_shards_ = 1;
  std::int64_t shard_size_ = 1;
  std::vector<std::int64_t> shards_;  // by point
};

/// Calls visit(local offset, place) for each element of `shard` of `index`, row-major, with its place under `other`.
/// Skips padding of the shard's buffer.
template <class Visit>
void for_each_element(const ShardIndex& index, std::int64_t shard, const ShardIndex& other, Visit visit) {
  const std::size_t rank = index.rank();
  std::vector<const std::vector<std::int64_t>*> held(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    held[d] = &index.held(shard, d);
    if (held[d]->empty()) return;
  }
  std::vector<std::size_t> at(rank, 0);
  std::vector<ShardIndex::Place> sums(rank + 1);  // the sum over the dimensions before each
  std::vector<std::int64_t> offsets(rank + 1, 0);
  std::size_t changed = 0;
  while (true) {
    for (std::size_t d = changed; d < rank; ++d) {
      const std::int64_t position = (*held[d])[at[d]];
      const ShardIndex::Place& place = other.place(d, position);
      sums[d + 1] = {sums[d].shard + place.shard, sums[d].offset + place.offset};
      offsets[d + 1] = offsets[d] + index.place(d, position).offset;
    }
    visit(offsets[rank], sums[rank]);
    std::size_t d = rank;
    while (d > 0 && at[d - 1] + 1 == held[d - 1]->size()) at[--d] = 0;
    if (d == 0) return;
    ++at[d - 1];
    changed = d - 1;
  }
}

}  // namespace shardplan
