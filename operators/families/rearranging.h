#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Other orders and repetitions of all elements: Transpose of dimensions, Tile (each dimension repeated) and BroadcastTo
/// (numpy's).
std::vector<OperatorType> rearranging_operators();

}  // namespace shardplan
