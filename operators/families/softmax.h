#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Softmax and LogSoftmax along one axis, shifted by the largest value so that nothing overflows. With the axis cut they
/// run in phases: the largest value and the sum of exponentials are all-reduced. Gradients: SoftmaxGrad(dy, y) and
/// LogSoftmaxGrad(dy, y), with one sum.
std::vector<OperatorType> softmax_operators();

}  // namespace shardplan
