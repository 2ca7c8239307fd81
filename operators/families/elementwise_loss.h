#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Losses of single elements, of the shape of the prediction; their mean or sum is an operator of its own.
///
///   SigmoidCrossEntropyWithLogits(logits, label)   labels are probabilities: max(x, 0) - x y + log(1 + exp(-|x|))
///   SmoothL1Loss(prediction, target)               (x - y)^2 / (2 beta) where |x - y| < beta, else |x - y| - beta / 2
std::vector<OperatorType> elementwise_loss_operators();

}  // namespace shardplan
