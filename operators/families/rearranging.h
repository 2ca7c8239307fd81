#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// Operators that move elements: transposing, cutting, joining and repeating tensors.
std::vector<TensorType> infer_transpose(const Operation& operation);
std::vector<TensorType> infer_split(const Operation& operation);
std::vector<TensorType> infer_concat(const Operation& operation);
std::vector<TensorType> infer_stack(const Operation& operation);
std::vector<TensorType> infer_slice(const Operation& operation);
std::vector<TensorType> infer_slice_grad(const Operation& operation);
std::vector<TensorType> infer_tile(const Operation& operation);
std::vector<TensorType> infer_broadcast_to(const Operation& operation);

ShardingRule transpose_rule(const Operation& operation);
/// A dimension cut into equal pieces walks (piece, position): the positions may be cut, the pieces may not. Unequal
/// pieces keep the dimension whole.
ShardingRule split_rule(const Operation& operation);
ShardingRule concat_rule(const Operation& operation);
ShardingRule stack_rule(const Operation& operation);
/// Dimensions that are taken as a whole pass through, others stay whole. Also of SliceGrad.
ShardingRule slice_rule(const Operation& operation);
ShardingRule tile_rule(const Operation& operation);
ShardingRule broadcast_to_rule(const Operation& operation);

void transpose_kernel(const KernelCall& call);
void split_kernel(const KernelCall& call);
void concat_kernel(const KernelCall& call);
void stack_kernel(const KernelCall& call);
void slice_kernel(const KernelCall& call);
void slice_grad_kernel(const KernelCall& call);
void tile_kernel(const KernelCall& call);
void broadcast_to_kernel(const KernelCall& call);

std::vector<std::optional<TensorId>> transpose_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> split_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> concat_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> stack_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> slice_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> tile_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> broadcast_to_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
