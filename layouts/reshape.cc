#include "layouts/reshape.h"

#include <algorithm>

#include "base/error.h"
#include "layouts/index_digits.h"

namespace shardplan {
namespace {

/// Products of the leading dimensions, without 1; the last one is the tensor's size.
std::vector<std::int64_t> running_products(const Shape& shape) {
  std::vector<std::int64_t> products;
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    product *= extent;
    if (extent != 1) products.push_back(product);
  }
  return products;
}

/// The digits of all dimensions, concatenated.
std::vector<IndexDigit> all_digits(const TensorLayout& layout, const Shape& shape) {
  std::vector<IndexDigit> digits;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::vector<IndexDigit> more = index_digits(layout.dimensions[d], shape[d]);
    digits.insert(digits.end(), more.begin(), more.end());
  }
  return digits;
}

/// Distributes the digits over the dimensions of a shape, splitting them at its borders. Nothing if a border does not
/// divide a digit.
std::optional<std::vector<DimensionLayout>> distributed(std::vector<IndexDigit> digits, const Shape& shape) {
  std::vector<DimensionLayout> dimensions;
  std::size_t next = 0;
  for (const std::int64_t extent : shape) {
    std::vector<IndexDigit> taken;
    for (std::int64_t room = extent; room > 1;) {
      SHARDPLAN_CHECK(next < digits.size());
      IndexDigit& digit = digits[next];
      const std::int64_t size = std::min(room, digit.size);
      if (room % size != 0 || digit.size % size != 0) return std::nullopt;
      taken.push_back({size, digit.axis});
      if (digit.axis) {
        taken.back().axis->size = size;
        digit.axis->before *= size;
        digit.axis->size /= size;
      }
      room /= size;
      digit.size /= size;
      if (digit.size == 1) ++next;
    }
    dimensions.push_back(dimension_of_digits(joined(taken)));
  }
  return dimensions;
}

}  // namespace

std::optional<Shape> refine(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> products = running_products(a);
  const std::vector<std::int64_t> others = running_products(b);
  const auto size = [](const std::vector<std::int64_t>& of) { return of.empty() ? 1 : of.back(); };
  if (size(products) != size(others)) return std::nullopt;
  products.insert(products.end(), others.begin(), others.end());
  std::sort(products.begin(), products.end());
  products.erase(std::unique(products.begin(), products.end()), products.end());
  Shape factors;
  std::int64_t last = 1;
  for (const std::int64_t product : products) {
    if (product == 0 || product % last != 0) return std::nullopt;
    factors.push_back(product / last);
    last = product;
  }
  return factors;
}

ReshapeEnds flatten_ends(const TensorLayout& from, const Shape& from_shape, const TensorLayout& to,
                         const Shape& to_shape) {
  const std::vector<std::int64_t> a = running_products(from_shape);
  const std::vector<std::int64_t> b = running_products(to_shape);
  SHARDPLAN_CHECK((a.empty() ? 1 : a.back()) == (b.empty() ? 1 : b.back()));
  std::vector<std::int64_t> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  ReshapeEnds ends;
  std::int64_t last = 1;
  for (const std::int64_t product : common) {
    SHARDPLAN_CHECK(product > 0);
    ends.shape.push_back(product / last);
    last = product;
  }
  const auto flattened = [&](const TensorLayout& layout, const Shape& shape) {
    TensorLayout result;
    // Each dimension of the flattened shape consists of consecutive whole dimensions of `shape`, so no digit is split.
    result.dimensions = *distributed(all_digits(layout, shape), ends.shape);
    result.partial = layout.partial;
    result.reduction = layout.reduction;
    return result;
  };
  ends.from = flattened(from, from_shape);
  ends.to = flattened(to, to_shape);
  return ends;
}

std::optional<TensorLayout> reshaped(const TensorLayout& layout, const Shape& shape, const Shape& other_shape) {
  const auto dimensions = distributed(joined(all_digits(layout, shape)), other_shape);
  if (!dimensions) return std::nullopt;
  TensorLayout result;
  result.dimensions = *dimensions;
  result.partial = layout.partial;
  std::sort(result.partial.begin(), result.partial.end());
  result.partial = joined(result.partial);
  if (!result.partial.empty()) result.reduction = layout.reduction;
  return result;
}

}  // namespace shardplan
