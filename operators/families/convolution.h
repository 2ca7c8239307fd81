#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Convolutions of x [n, c, h, w] with a weight [out, c / group, kh, kw], NCHW. Heights and widths of the result are
/// factors that x reads through windows: cut, x needs a halo.
///
///   Conv2D(x, weight)               y
///   Conv2DBackpropInput(dy, weight) the gradient of x; dy needs a halo
///   Conv2DBackpropFilter(dy, x)     the gradient of the weight, a sum over batch and positions
std::vector<OperatorType> convolution_operators();

}  // namespace shardplan
