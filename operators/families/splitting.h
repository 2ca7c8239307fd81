#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Cutting a tensor into pieces along one dimension (Split) and joining tensors, along a dimension (Concat) or as a new
/// one (Stack). Equal pieces may be cut within, all alike; unequal ones keep the dimension whole.
std::vector<OperatorType> splitting_operators();

}  // namespace shardplan
