#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// ReduceSum, ReduceMean, ReduceMax and ReduceMin over `axis` (all dimensions if empty), and SquareSum, the sum of all
/// squares as a scalar. A reduced dimension may be cut: each device has a summand (a maximum, a minimum) of the result.
std::vector<OperatorType> reduction_operators();

}  // namespace shardplan
