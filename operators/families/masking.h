#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// MaskPadding: replaces the values in the padding of a tensor (graph/pad.h), so that nothing after it sees
/// that.
std::vector<OperatorType> masking_operators();

}  // namespace shardplan
