#include "layouts/held_positions.h"

#include <algorithm>

#include "base/error.h"
#include "layouts/index_digits.h"

namespace shardplan {

HeldPositions::HeldPositions(const DimensionLayout& dimension, const DeviceMesh& mesh, std::int64_t extent,
                             std::int64_t point) {
  const std::vector<IndexDigit> digits = index_digits(dimension, extent);
  std::int64_t stride = 1;
  size_ = 1;
  for (std::size_t i = digits.size(); i-- > 0;) {
    const IndexDigit& digit = digits[i];
    if (digit.axis) {
      begin_ += mesh.coordinate(point, *digit.axis) * stride;
    } else {
      runs_.insert(runs_.begin(), {digit.size, stride});
      size_ *= digit.size;
    }
    stride *= digit.size;
  }
  // In an uneven dimension the digits also count through the padding.
  size_ = num_before(extent);
}

std::int64_t HeldPositions::operator[](std::int64_t i) const {
  SHARDPLAN_CHECK(i >= 0 && i < size_);
  std::int64_t position = begin_;
  for (std::size_t k = runs_.size(); k-- > 0;) {
    position += i % runs_[k].count * runs_[k].stride;
    i /= runs_[k].count;
  }
  return position;
}

std::int64_t HeldPositions::num_before(std::int64_t position) const {
  std::int64_t rest = position - begin_;
  if (rest <= 0) return 0;
  const std::vector<std::int64_t> blocks = block_sizes();
  std::int64_t count = 0;
  for (std::size_t k = 0; k < runs_.size(); ++k) {
    const std::int64_t before = std::min(rest / runs_[k].stride, runs_[k].count);
    count += before * blocks[k];
    if (before == runs_[k].count) return std::min(count, size_);
    rest -= before * runs_[k].stride;
  }
  return std::min(count + (rest > 0 ? 1 : 0), size_);
}

std::int64_t HeldPositions::interval_length() const {
  return runs_.empty() || runs_.back().stride > 1 ? 1 : runs_.back().count;
}

std::vector<std::int64_t> HeldPositions::block_sizes() const {
  std::vector<std::int64_t> sizes(runs_.size(), 1);
  for (std::size_t k = runs_.size(); k-- > 1;) sizes[k - 1] = sizes[k] * runs_[k].count;
  return sizes;
}

}  // namespace shardplan
