#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Activations of neural networks, element by element: ReLU, GeLU, SiLU, Sigmoid, Tanh. Each but the identity has an
/// operator "<name>Grad" of dy and either x or y, whichever makes the slope simpler.
std::vector<OperatorType> activation_operators();

}  // namespace shardplan
