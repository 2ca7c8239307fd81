#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Updates of the rows of a table that a step has looked up (SparseGatherV2), as the optimizers of recommenders do: the
/// table's gradient exists only as one row for each index. Rows with equal indices are added up. All other rows and
/// their moments stay as they are.
///
///   SparseApplyGradientDescent(param, indices, rows)      the same as ApplyGradientDescent of the whole gradient
///   SparseApplyAdam(param, m, v, step, indices, rows)     moments decay only in steps that look their row up ("lazy")
std::vector<OperatorType> sparse_update_operators();

}  // namespace shardplan
