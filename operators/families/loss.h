#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// SoftmaxCrossEntropyWithLogits: logits and labels [.., classes] -> one loss per row. The classes are the last
/// dimension; cut, the operator runs in phases.
std::vector<TensorType> infer_cross_entropy(const Operation& operation);
ShardingRule cross_entropy_rule(const Operation& operation);
Phases cross_entropy_phases(const Operation& operation);
/// (dloss, logits, labels) -> dlogits.
std::vector<TensorType> infer_cross_entropy_grad(const Operation& operation);
ShardingRule cross_entropy_grad_rule(const Operation& operation);
Phases cross_entropy_grad_phases(const Operation& operation);

/// SparseSoftmaxCrossEntropyWithLogits: integer labels [..]; the mean or sum over all rows, or one loss per row.
std::vector<TensorType> infer_sparse_cross_entropy(const Operation& operation);
ShardingRule sparse_cross_entropy_rule(const Operation& operation);
Phases sparse_cross_entropy_phases(const Operation& operation);
std::vector<TensorType> infer_sparse_cross_entropy_grad(const Operation& operation);
ShardingRule sparse_cross_entropy_grad_rule(const Operation& operation);
Phases sparse_cross_entropy_grad_phases(const Operation& operation);

/// Phases.
std::vector<TensorType> infer_loss_terms(const Operation& operation);
ShardingRule loss_terms_rule(const Operation& operation);
std::vector<TensorType> infer_reduced_loss(const Operation& operation);
ShardingRule reduced_loss_rule(const Operation& operation);
std::vector<TensorType> infer_like_second(const Operation& operation);
/// (dloss, logits, labels, statistics of the rows) -> dlogits.
ShardingRule loss_grad_apply_rule(const Operation& operation);
void cross_entropy_terms_kernel(const KernelCall& call);
void cross_entropy_grad_apply_kernel(const KernelCall& call);
void sparse_pick_kernel(const KernelCall& call);
void sparse_cross_entropy_apply_kernel(const KernelCall& call);
void sparse_cross_entropy_grad_apply_kernel(const KernelCall& call);

std::vector<std::optional<TensorId>> cross_entropy_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> sparse_cross_entropy_gradient(GradientBuilder& builder,
                                                                   const GradientRequest& request);

}  // namespace shardplan
