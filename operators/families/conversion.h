#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Operators that hand their operand on: Cast to another dtype (to integers towards zero, to bool whether it is not 0),
/// Identity, and Accumulate, which adds the share x / count of one of `count` runs to a sum.
std::vector<OperatorType> conversion_operators();

}  // namespace shardplan
