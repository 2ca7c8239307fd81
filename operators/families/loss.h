#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Cross-entropy of the softmax of logits [.., classes]; with the classes cut the operators run in phases.
///
///   SoftmaxCrossEntropyWithLogits(logits, labels)        labels [.., classes] are probabilities; one loss per row
///   SparseSoftmaxCrossEntropyWithLogits(logits, labels)  labels [..] are integers; the mean or sum over all rows, or one
///                                                        loss per row
std::vector<OperatorType> loss_operators();

}  // namespace shardplan
