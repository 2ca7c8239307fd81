#include "layouts/redistribution/search/part_borders.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "layouts/index_digits.h"

namespace shardplan {

PartBorders part_borders(const TensorLayout& layout, const Shape& shape) {
  PartBorders borders(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (layout.dimensions[d].parts.size() < 2) continue;
    const std::vector<IndexDigit> digits = index_digits(layout.dimensions[d], shape[d]);
    std::int64_t product = 1;
    for (std::size_t i = 0; i + 1 < digits.size(); ++i) {
      product *= digits[i].size;
      if (!digits[i].axis) borders[d].push_back(product);
    }
  }
  return borders;
}

std::optional<PartBorders> joined_borders(const PartBorders& a, const PartBorders& b) {
  PartBorders joined(a.size());
  for (std::size_t d = 0; d < a.size(); ++d) {
    std::set_union(a[d].begin(), a[d].end(), b[d].begin(), b[d].end(), std::back_inserter(joined[d]));
    std::int64_t last = 1;
    for (const std::int64_t border : joined[d]) {
      if (border % last != 0) return std::nullopt;
      last = border;
    }
  }
  return joined;
}

LayoutSpace space_of_pieces(const std::vector<AxisRef>& pieces, const PartBorders& borders, const Shape& shape,
                            std::int64_t num_devices) {
  LayoutSpace space{pieces, {}, {Reduction::kSum}};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t last = 1;
    for (const std::int64_t border : borders[d]) {
      space.slots.push_back({d, border / last, true});
      last = border;
    }
    const std::int64_t divisor = std::gcd(shape[d] / last, num_devices);
    if (last > 1 || divisor > 1) space.slots.push_back({d, divisor, false});
  }
  return space;
}

LayoutSpace space_of_rows(const LayoutSpace& space, const Shape& shape, std::int64_t num_devices) {
  LayoutSpace rows{space.pieces, {}, space.reductions};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t divisor = std::gcd(shape[d], num_devices);
    if (divisor > 1) rows.slots.push_back({d, divisor, false});
  }
  return rows;
}

}  // namespace shardplan
