#include "simulator/execute/shard_index.h"

#include "base/error.h"
#include "layouts/index_digits.h"

namespace shardplan {

ShardIndex::ShardIndex(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape)
    : dimensions_(shape.size()), shards_(static_cast<std::size_t>(mesh.num_devices()), 0) {
  SHARDPLAN_CHECK(layout.dimensions.size() == shape.size());
  const Shape local = local_shape(layout, shape);
  std::int64_t offset_stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    Dimension& dimension = dimensions_[d];
    const std::vector<IndexDigit> digits = index_digits(layout.dimensions[d], shape[d]);
    std::vector<AxisRef> axes;
    for (const IndexDigit& digit : digits) {
      if (digit.axis) axes.push_back(*digit.axis);
    }
    dimension.num_pieces = num_pieces(axes);
    dimension.shard_stride = num_shards_;
    dimension.held.resize(static_cast<std::size_t>(dimension.num_pieces));
    dimension.places.resize(static_cast<std::size_t>(shape[d]));
    std::int64_t padded = 1;
    for (const IndexDigit& digit : digits) padded *= digit.size;
    for (std::int64_t position = 0; position < shape[d]; ++position) {
      std::int64_t piece = 0;
      std::int64_t rest = position;
      std::int64_t weight = padded;
      for (const IndexDigit& digit : digits) {
        weight /= digit.size;
        if (digit.axis) piece = piece * digit.size + rest / weight;
        rest %= weight;
      }
      std::vector<std::int64_t>& held = dimension.held[static_cast<std::size_t>(piece)];
      dimension.places[static_cast<std::size_t>(position)] = {piece * num_shards_,
                                                              static_cast<std::int64_t>(held.size()) * offset_stride};
      held.push_back(position);
    }
    for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
      shards_[static_cast<std::size_t>(point)] += mesh.coordinate(point, axes) * num_shards_;
    }
    num_shards_ *= dimension.num_pieces;
    offset_stride *= local[d];
  }
  shard_size_ = offset_stride;
}

const std::vector<std::int64_t>& ShardIndex::held(std::int64_t shard, std::size_t dimension) const {
  const Dimension& of = dimensions_[dimension];
  return of.held[static_cast<std::size_t>(shard / of.shard_stride % of.num_pieces)];
}

}  // namespace shardplan
