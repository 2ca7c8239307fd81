#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// BatchNorm(x [n, c, ...], gamma [c], beta, moving_mean, moving_variance). In training: statistics over all dimensions
/// but c, of the global batch: with any of these cut it runs in phases. Results y, the updated moving statistics, and
/// mean and variance of the batch, which the gradient reads. In inference: y alone, by the moving statistics.
std::vector<OperatorType> batch_norm_operators();

}  // namespace shardplan
