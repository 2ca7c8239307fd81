#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// RotaryEmbedding(x, cos, sin): x * cos + (-x2, x1) * sin with the halves x1, x2 of the last dimension, which walks
/// (half, position): the positions may be cut. cos and sin have the last dimensions of x. RotaryEmbeddingGrad is its
/// transpose in x.
std::vector<OperatorType> rotary_operators();

}  // namespace shardplan
