#include "solver/presolve/edge_normal_form.h"

#include <algorithm>
#include <utility>

#include "solver/core/vector_kernels.h"

namespace shardplan {
namespace {

/// By row (or column) the position of its only pair that is not forbidden.
Positions only_pairs(const CostMatrix& table, bool is_by_row, SharedTables& shared) {
  const std::size_t lines = is_by_row ? table.rows : table.columns, length = is_by_row ? table.columns : table.rows;
  std::vector<std::uint32_t> map;
  for (std::size_t line = 0; line < lines; ++line) {
    std::uint32_t at = 0;
    while (at < length && (is_by_row ? table.at(line, at) : table.at(at, line)) >= kForbidden) ++at;
    map.push_back(at);
  }
  return shared.positions.intern(std::move(map));
}

}  // namespace

EdgeNormalForm normal_form(const TableRef& table, SharedTables& shared) {
  const std::size_t rows = table->rows;
  const std::size_t columns = table->columns;
  const auto row_of = [&](std::size_t row) { return table->costs.data() + row * columns; };
  std::vector<std::int64_t> row_min(rows, kForbidden), column_min(columns, kForbidden);
  std::vector<std::uint32_t> dead_rows, dead_columns;
  for (std::size_t row = 0; row < rows; ++row) {
    if (columns > 0) row_min[row] = std::min(kForbidden, least_of(row_of(row), columns));
    if (row_min[row] >= kForbidden) {
      dead_rows.push_back(static_cast<std::uint32_t>(row));
      row_min[row] = 0;
    }
    lower_to_differences(row_of(row), row_min[row], kForbidden, columns, column_min.data());
  }
  for (std::size_t column = 0; column < columns; ++column) {
    if (column_min[column] < kForbidden) continue;
    dead_columns.push_back(static_cast<std::uint32_t>(column));
    column_min[column] = 0;
  }
  EdgeNormalForm result;
  if (dead_rows.empty() && dead_columns.empty()) {
    bool has_row_map = true;
    std::vector<std::int64_t> column_count(columns, 0);
    for (std::size_t row = 0; row < rows; ++row) {
      has_row_map = count_below(row_of(row), kForbidden, columns, column_count.data()) == 1 && has_row_map;
    }
    const auto is_one = [](std::int64_t count) { return count == 1; };
    if (has_row_map) result.row_map = only_pairs(*table, true, shared);
    if (std::all_of(column_count.begin(), column_count.end(), is_one)) {
      result.column_map = only_pairs(*table, false, shared);
    }
  }
  const auto is_zero = [](std::int64_t cost) { return cost == 0; };
  const auto are_zero = [&](const std::vector<std::int64_t>& costs) { return std::ranges::all_of(costs, is_zero); };
  if (are_zero(row_min) && are_zero(column_min)) {
    if (!are_zero(table->costs)) result.table = table;
  } else {
    std::vector<std::int64_t> shifted = table->costs;
    for (std::size_t row = 0; row < rows; ++row) {
      subtract(row_min[row], column_min.data(), kForbidden, columns, shifted.data() + row * columns);
    }
    if (!are_zero(shifted)) {
      result.table = shared.tables.intern(CostMatrix{table->rows, table->columns, std::move(shifted)});
    }
  }
  result.row_shift = shared.numbers.intern(std::move(row_min));
  result.column_shift = shared.numbers.intern(std::move(column_min));
  result.dead_rows = shared.positions.intern(std::move(dead_rows));
  result.dead_columns = shared.positions.intern(std::move(dead_columns));
  return result;
}

}  // namespace shardplan
