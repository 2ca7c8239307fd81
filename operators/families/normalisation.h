#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// Softmax and LogSoftmax along one axis, LayerNorm and RmsNorm over the last dimensions: with the normalised
/// dimensions cut they run in phases, whose small statistics keep these dimensions as size 1. All factors are named by
/// position.
std::vector<TensorType> infer_softmax(const Operation& operation);
ShardingRule softmax_rule(const Operation& operation);
Phases softmax_phases(const Operation& operation);
Phases log_softmax_phases(const Operation& operation);
/// (dy, y) -> dx.
Phases softmax_grad_phases(const Operation& operation);
Phases log_softmax_grad_phases(const Operation& operation);

std::vector<TensorType> infer_layer_norm(const Operation& operation);
ShardingRule layer_norm_rule(const Operation& operation);
Phases layer_norm_phases(const Operation& operation);
/// (dy, x, gamma) -> dx, dgamma, dbeta.
std::vector<TensorType> infer_layer_norm_grad(const Operation& operation);
ShardingRule layer_norm_grad_rule(const Operation& operation);
Phases layer_norm_grad_phases(const Operation& operation);

std::vector<TensorType> infer_rms_norm(const Operation& operation);
ShardingRule rms_norm_rule(const Operation& operation);
Phases rms_norm_phases(const Operation& operation);
/// (dy, x, gamma) -> dx, dgamma.
std::vector<TensorType> infer_rms_norm_grad(const Operation& operation);
ShardingRule rms_norm_grad_rule(const Operation& operation);
Phases rms_norm_grad_phases(const Operation& operation);

/// Phases. Statistics (x, further operands -> one value per row, reduced dimensions kept as 1).
std::vector<TensorType> infer_statistic(const Operation& operation);
std::vector<TensorType> infer_two_statistics(const Operation& operation);
ShardingRule statistic_rule(const Operation& operation);
std::vector<TensorType> infer_exp_and_sum(const Operation& operation);
/// Results as the first operand; others broadcast to it.
std::vector<TensorType> infer_like_first(const Operation& operation);
std::vector<TensorType> infer_norm_grad_apply(const Operation& operation);
ShardingRule norm_grad_apply_rule(const Operation& operation);

void exp_sum_kernel(const KernelCall& call);
void exp_and_sum_kernel(const KernelCall& call);
void product_sum_kernel(const KernelCall& call);
void softmax_grad_apply_kernel(const KernelCall& call);
void log_softmax_apply_kernel(const KernelCall& call);
void log_softmax_grad_apply_kernel(const KernelCall& call);
void centred_square_mean_kernel(const KernelCall& call);
void square_mean_kernel(const KernelCall& call);
void layer_norm_apply_kernel(const KernelCall& call);
void layer_norm_grad_means_kernel(const KernelCall& call);
void layer_norm_grad_apply_kernel(const KernelCall& call);
void rms_norm_apply_kernel(const KernelCall& call);
void rms_norm_grad_mean_kernel(const KernelCall& call);
void rms_norm_grad_apply_kernel(const KernelCall& call);

std::vector<std::optional<TensorId>> norm_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
