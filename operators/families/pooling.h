#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// MaxPool and AvgPool over the last two dimensions of an NCHW tensor. Padding is never the maximum and never counted.
std::vector<TensorType> infer_pool(const Operation& operation);
ShardingRule pool_rule(const Operation& operation);
void max_pool_kernel(const KernelCall& call);
void avg_pool_kernel(const KernelCall& call);

/// MaxPoolGrad(dy, x): to the first largest element of each window. AvgPoolGrad(dy): equal shares.
std::vector<TensorType> infer_max_pool_grad(const Operation& operation);
ShardingRule max_pool_grad_rule(const Operation& operation);
void max_pool_grad_kernel(const KernelCall& call);
std::vector<TensorType> infer_avg_pool_grad(const Operation& operation);
ShardingRule avg_pool_grad_rule(const Operation& operation);
void avg_pool_grad_kernel(const KernelCall& call);

std::vector<std::optional<TensorId>> max_pool_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> avg_pool_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
