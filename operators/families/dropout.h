#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Dropout keeps an element with probability keep_prob, by (seed, global position), and divides it by keep_prob; the
/// second result is the mask. `KernelCall::seed` is to differ between the Dropouts of one graph and between steps, and
/// to be equal for the copy of one that recomputation makes.
std::vector<OperatorType> dropout_operators();

}  // namespace shardplan
