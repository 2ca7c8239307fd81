#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// MaskPadding: a value in place of what stands in the padding of a tensor (graph/pad.h), so that nothing behind it sees
/// that.
std::vector<OperatorType> masking_operators();

}  // namespace shardplan
