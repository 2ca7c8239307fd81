#include "solver/presolve/edge_normal_form.h"

#include <algorithm>

namespace shardplan {

EdgeNormalForm normal_form(const TableRef& table, SharedTables& shared) {
  const std::size_t rows = table->rows;
  const std::size_t columns = table->columns;
  std::vector<std::int64_t> row_min(rows, kForbidden), column_min(columns, kForbidden);
  std::vector<std::uint32_t> dead_rows, dead_columns;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      row_min[row] = std::min(row_min[row], table->at(row, column));
    }
    if (row_min[row] >= kForbidden) {
      dead_rows.push_back(static_cast<std::uint32_t>(row));
      row_min[row] = 0;
    }
  }
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::int64_t cost = table->at(row, column);
      if (cost < kForbidden) column_min[column] = std::min(column_min[column], cost - row_min[row]);
    }
  }
  for (std::size_t column = 0; column < columns; ++column) {
    if (column_min[column] < kForbidden) continue;
    dead_columns.push_back(static_cast<std::uint32_t>(column));
    column_min[column] = 0;
  }
  EdgeNormalForm result;
  CostMatrix shifted = *table;
  bool is_zero = true;
  std::vector<std::uint32_t> row_count(rows, 0), column_count(columns, 0), row_map(rows, 0), column_map(columns, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      std::int64_t& cost = shifted.costs[row * columns + column];
      if (cost < kForbidden) {
        cost -= row_min[row] + column_min[column];
        ++row_count[row];
        ++column_count[column];
        row_map[row] = static_cast<std::uint32_t>(column);
        column_map[column] = static_cast<std::uint32_t>(row);
      }
      is_zero = is_zero && cost == 0;
    }
  }
  const auto is_one = [](std::uint32_t count) { return count == 1; };
  const bool is_clean = dead_rows.empty() && dead_columns.empty();
  if (is_clean && std::all_of(row_count.begin(), row_count.end(), is_one)) {
    result.row_map = shared.positions.intern(std::move(row_map));
  }
  if (is_clean && std::all_of(column_count.begin(), column_count.end(), is_one)) {
    result.column_map = shared.positions.intern(std::move(column_map));
  }
  if (!is_zero) result.table = shifted.costs == table->costs ? table : shared.tables.intern(std::move(shifted));
  result.row_shift = shared.numbers.intern(std::move(row_min));
  result.column_shift = shared.numbers.intern(std::move(column_min));
  result.dead_rows = shared.positions.intern(std::move(dead_rows));
  result.dead_columns = shared.positions.intern(std::move(dead_columns));
  return result;
}

}  // namespace shardplan
