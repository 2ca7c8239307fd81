#include "simulator/execute/padding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace shardplan {
namespace {

/// Calls visit(begin in the packed buffer, begin in the padded one, length) for each innermost row.
template <class Visit>
void for_each_row(const Shape& held, const Shape& buffer_shape, Visit visit) {
  SHARDPLAN_CHECK(held.size() == buffer_shape.size());
  const std::size_t rank = held.size();
  for (std::size_t d = 0; d < rank; ++d) SHARDPLAN_CHECK(held[d] <= buffer_shape[d]);
  if (num_elements(held) == 0) return;
  const std::int64_t row = rank == 0 ? 1 : held[rank - 1];
  Shape at(rank, 0);
  for (std::int64_t packed = 0; packed < num_elements(held); packed += row) {
    std::int64_t padded = 0;
    for (std::size_t d = 0; d < rank; ++d) padded = padded * buffer_shape[d] + at[d];
    visit(packed, padded, row);
    for (std::size_t d = rank; d-- > 1;) {
      if (++at[d - 1] < held[d - 1]) break;
      at[d - 1] = 0;
    }
  }
}

}  // namespace

std::vector<double> without_padding(const std::vector<double>& buffer, const Shape& buffer_shape, const Shape& held) {
  std::vector<double> values(static_cast<std::size_t>(num_elements(held)));
  for_each_row(held, buffer_shape, [&](std::int64_t packed, std::int64_t padded, std::int64_t row) {
    std::copy_n(buffer.begin() + padded, row, values.begin() + packed);
  });
  return values;
}

std::vector<double> with_padding(const std::vector<double>& values, const Shape& held, const Shape& buffer_shape) {
  std::vector<double> buffer(static_cast<std::size_t>(num_elements(buffer_shape)), kPadding);
  for_each_row(held, buffer_shape, [&](std::int64_t packed, std::int64_t padded, std::int64_t row) {
    std::copy_n(values.begin() + packed, row, buffer.begin() + padded);
  });
  return buffer;
}

bool hold_the_same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

}  // namespace shardplan
