#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// MaxPool and AvgPool over the last two dimensions of an NCHW tensor. Padding is never the maximum and never counted;
/// it must be narrower than the window. Gradients: MaxPoolGrad(dy, x) gives all to the first largest element of each
/// window, AvgPoolGrad(dy) equal shares.
std::vector<OperatorType> pooling_operators();

}  // namespace shardplan
