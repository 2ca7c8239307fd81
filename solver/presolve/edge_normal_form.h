#pragma once

#include "solver/presolve/shared_tables.h"

namespace shardplan {

/// A table of pair costs less all that depends on one of its two ends alone:
///
///   3 5          0 1            row_shift {3, 6}: least of each row
///   6 7    ->    0 0            column_shift {0, 1}: least of each column of what is left
///
/// A separable table f(a) + g(b) becomes zero, and a row or column of forbidden pairs only is dead: no feasible choice
/// takes that value. Every other row and column of the result has a zero and none has a negative entry.
struct EdgeNormalForm {
  TableRef table;  // null: zero everywhere
  Numbers row_shift, column_shift;
  Positions dead_rows, dead_columns;
  /// Where each row (column) has exactly one pair that is not forbidden: that pair's column (row). Null otherwise.
  Positions row_map, column_map;
};
EdgeNormalForm normal_form(const TableRef& table, SharedTables& shared);

}  // namespace shardplan
