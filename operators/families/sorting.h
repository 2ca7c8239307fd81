#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Operators that order the last dimension, which stays whole: TopK gives the k largest values and their positions,
/// largest first, the first position at a tie. TopKGrad puts gradients back where the values came from.
std::vector<OperatorType> sorting_operators();

}  // namespace shardplan
