#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// Operators that move no data: another shape of the same row-major elements.
std::vector<TensorType> infer_reshape(const Operation& operation);
std::vector<TensorType> infer_flatten(const Operation& operation);
std::vector<TensorType> infer_expand_dims(const Operation& operation);
std::vector<TensorType> infer_squeeze(const Operation& operation);

/// Refines the dimensions of both shapes into common factors, greedily on the running products: [6, 4] -> [2, 12] has
/// the factors 2, 3, 4: "(a b) c -> a (b c)". Where sizes share no divisor, such as [2, 3, 5] -> [2, 5, 3], dimensions
/// stay whole until the products meet again.
ShardingRule reshape_rule(const Operation& operation);
void copy_kernel(const KernelCall& call);
std::vector<std::optional<TensorId>> reshape_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
