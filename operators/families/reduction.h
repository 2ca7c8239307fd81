#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// ReduceSum, ReduceMean, ReduceMax, ReduceMin over `axis` (all dimensions if empty).
std::vector<TensorType> infer_reduce(const Operation& operation);
ShardingRule reduce_rule(const Operation& operation);
void reduce_sum_kernel(const KernelCall& call);
/// Divides by the global count: means of parts add up to the mean.
void reduce_mean_kernel(const KernelCall& call);
void reduce_max_kernel(const KernelCall& call);
void reduce_min_kernel(const KernelCall& call);

/// The sum of all squares as a scalar: what clipping by the global norm adds up.
std::vector<TensorType> infer_square_sum(const Operation& operation);
ShardingRule square_sum_rule(const Operation& operation);
void square_sum_kernel(const KernelCall& call);

/// Running sums along one dimension, which stays whole.
std::vector<TensorType> infer_cum_sum(const Operation& operation);
ShardingRule cum_sum_rule(const Operation& operation);
void cum_sum_kernel(const KernelCall& call);

/// The k largest of the last dimension and their positions; the dimension stays whole.
std::vector<TensorType> infer_top_k(const Operation& operation);
ShardingRule top_k_rule(const Operation& operation);
void top_k_kernel(const KernelCall& call);
std::vector<TensorType> infer_top_k_grad(const Operation& operation);
ShardingRule top_k_grad_rule(const Operation& operation);
void top_k_grad_kernel(const KernelCall& call);

std::vector<std::optional<TensorId>> reduce_sum_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> reduce_mean_gradient(GradientBuilder& builder, const GradientRequest& request);
/// Of ReduceMax and ReduceMin: equal shares to all that are extreme.
std::vector<std::optional<TensorId>> reduce_extreme_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> cum_sum_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> top_k_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
