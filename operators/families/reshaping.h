#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Operators that move no data: another shape of the same row-major elements (Reshape, Flatten, ExpandDims, Squeeze). A
/// cut goes along with the factors that both shapes have in common.
std::vector<OperatorType> reshaping_operators();

}  // namespace shardplan
