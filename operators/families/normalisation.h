#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Norms over the last dimensions, of the biased variance (or the mean of squares) plus epsilon:
///
///   LayerNorm(x, gamma, beta)   over dimensions from begin_norm_axis on; gamma and beta from begin_params_axis on
///   RmsNorm(x, gamma)           over as many of the last dimensions as gamma has
///
/// With a normalised dimension cut they run in phases, whose small statistics keep these dimensions as size 1.
std::vector<OperatorType> normalisation_operators();

}  // namespace shardplan
