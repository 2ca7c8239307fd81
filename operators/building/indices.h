#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "operators/kernel.h"
#include "operators/operation.h"

namespace shardplan {

/// InputError if the operand is not of integers.
void check_indices(const Operation& operation, std::size_t operand);

/// Calls `body(offset in the table, offset in the rows, width)` for each row that the box of the table holds. The table
/// is [pre.., v, post..], the rows are [pre.., indices.., post..], and pre has `pre_rank` dimensions.
template <class Body>
void for_each_row(const Shape& rows, std::size_t pre_rank, const OperandView& indices, const Box& table, Body body) {
  std::int64_t before = 1;
  for (std::size_t d = 0; d < pre_rank; ++d) before *= rows[d];
  const std::int64_t count = num_elements(indices.shape);
  const std::int64_t width = num_elements(rows) / std::max<std::int64_t>(1, before * count);
  for (std::int64_t p = 0; p < before; ++p) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double index = indices.data[i];
      if (!(index >= static_cast<double>(table.begin) && index < static_cast<double>(table.end))) continue;
      const std::int64_t row = static_cast<std::int64_t>(index) - table.begin;
      body((p * table.size() + row) * width, (p * count + i) * width, width);
    }
  }
}

}  // namespace shardplan
