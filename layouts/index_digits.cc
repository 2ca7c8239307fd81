#include "layouts/index_digits.h"

namespace shardplan {

std::vector<IndexDigit> joined(const std::vector<IndexDigit>& digits) {
  std::vector<IndexDigit> result;
  for (const IndexDigit& digit : digits) {
    if (digit.size == 1) continue;
    if (!result.empty()) {
      IndexDigit& last = result.back();
      if (!last.axis && !digit.axis) {
        last.size *= digit.size;
        continue;
      }
      if (last.axis && digit.axis && is_followed_by(*last.axis, *digit.axis)) {
        last.size *= digit.size;
        last.axis->size = last.size;
        continue;
      }
    }
    result.push_back(digit);
  }
  return result;
}

std::vector<IndexDigit> index_digits(const DimensionLayout& dimension, std::int64_t extent) {
  std::vector<IndexDigit> digits;
  for (const DimensionPart& part : dimension.parts) {
    std::int64_t rest = part.size == 0 ? extent : part.size;
    for (const AxisRef& axis : part.axes) {
      digits.push_back({axis.size, axis});
      rest = (rest + axis.size - 1) / axis.size;
    }
    digits.push_back({rest, std::nullopt});
  }
  if (dimension.parts.empty()) digits.push_back({extent, std::nullopt});
  return joined(digits);
}

DimensionLayout dimension_of_digits(const std::vector<IndexDigit>& digits) {
  DimensionLayout dimension;
  bool begins_part = true;
  for (const IndexDigit& digit : digits) {
    if (begins_part) dimension.parts.push_back({1, {}});
    DimensionPart& part = dimension.parts.back();
    part.size *= digit.size;
    if (digit.axis) part.axes.push_back(*digit.axis);
    begins_part = !digit.axis;
  }
  if (dimension.parts.empty()) dimension.parts.emplace_back();
  if (dimension.parts.size() == 1) dimension.parts.front().size = 0;
  return dimension;
}

}  // namespace shardplan
