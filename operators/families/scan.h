#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Operators whose result at one position depends on all positions before it, so that the dimension stays whole: CumSum.
std::vector<OperatorType> scan_operators();

}  // namespace shardplan
