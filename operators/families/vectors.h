#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Operators on vectors along a dimension.
///
///   L2Normalize(x; axis, epsilon)   x / sqrt(max(sum of squares over axis, epsilon)); cut along axis in phases
///   Cross(x1, x2; dim)              products of vectors of three numbers along dim, which is whole
///   Outer(x1 [m], x2 [n])           x1 x2^T
std::vector<OperatorType> vector_operators();

}  // namespace shardplan
