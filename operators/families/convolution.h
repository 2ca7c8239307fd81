#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Convolutions of x [n, c, ...] with a weight [out, c / group, k...] over one, two or three spatial dimensions; N is 1, 2
/// or 3. The result's spatial dimensions are factors that x reads through windows: cut, x needs a halo.
///
///   ConvND(x, weight)               y
///   ConvNDBackpropInput(dy, weight) the gradient of x; dy needs a halo
///   ConvNDBackpropFilter(dy, x)     the gradient of the weight, a sum over batch and positions
///   ConvNDTranspose(x, weight)      the same as ConvNDBackpropInput, as an operator of its own: weight [c, out / group,
///                                   k...], each position of x spread over a window of y
std::vector<OperatorType> convolution_operators();

}  // namespace shardplan
