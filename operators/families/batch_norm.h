#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// BatchNorm(x [n, c, ...], gamma, beta, moving_mean, moving_variance). In training: statistics over all dimensions but
/// c, of the global batch: with any of these cut it runs in phases. Results y, the updated moving statistics, and mean
/// and variance of the batch, which the gradient reads. In inference: y alone, by the moving statistics.
std::vector<TensorType> infer_batch_norm(const Operation& operation);
ShardingRule batch_norm_rule(const Operation& operation);
Phases batch_norm_phases(const Operation& operation);

/// (dy, x, gamma, mean, variance) -> dx, dgamma, dbeta.
std::vector<TensorType> infer_batch_norm_grad(const Operation& operation);
ShardingRule batch_norm_grad_rule(const Operation& operation);
Phases batch_norm_grad_phases(const Operation& operation);

/// Phases: statistics per channel, elementwise with channel vectors, and vectors alone.
std::vector<TensorType> infer_channel_statistic(const Operation& operation);
std::vector<TensorType> infer_two_channel_statistics(const Operation& operation);
ShardingRule channel_statistic_rule(const Operation& operation);
std::vector<TensorType> infer_channel_apply(const Operation& operation);
ShardingRule channel_apply_rule(const Operation& operation);
std::vector<TensorType> infer_moving_average(const Operation& operation);
ShardingRule moving_average_rule(const Operation& operation);
void channel_mean_kernel(const KernelCall& call);
void channel_variance_kernel(const KernelCall& call);
void batch_norm_apply_kernel(const KernelCall& call);
void moving_average_kernel(const KernelCall& call);
void batch_norm_grad_sums_kernel(const KernelCall& call);
void batch_norm_grad_apply_kernel(const KernelCall& call);

std::vector<std::optional<TensorId>> batch_norm_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
