#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Optimizer updates: elementwise over tensors shaped as the parameter, so that an update may be cut in any way,
/// whatever the layout that the parameter is stored in. The first operands are the parameter (its f32 master copy in
/// mixed precision) and its states, the last is the gradient, of any floating type; results are the new parameter and
/// states in that order.
///
///   ApplyGradientDescent (param, grad)              p - lr * (g + weight_decay * p)
///   ApplyMomentum        (param, moment, grad)      m' = momentum * m + g + weight_decay * p;  p - lr * m'
///   ApplyAdam            (param, m, v, step, grad)  weight decay is added to the gradient
///   ApplyAdamW           (param, m, v, step, grad)  weight decay acts on the parameter (Loshchilov and Hutter, 2019)
///
/// `step` is a scalar that counts the updates done before this one; it too comes back, one higher.
/// ClipScale(square_sum) -> min(1, clip_norm / sqrt(square_sum)), a scalar of a scalar.
std::vector<OperatorType> optimizer_operators();

}  // namespace shardplan
