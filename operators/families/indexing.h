#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// Gather(params, indices): rows of `params` along `axis`, one per index: "v h, b s -> b s h". Cut along v, each device
/// gives the rows it has and zeros for the others, which is a partial sum. Indices outside give zeros.
std::vector<TensorType> infer_gather(const Operation& operation);
ShardingRule gather_rule(const Operation& operation);
void gather_kernel(const KernelCall& call);
std::vector<std::optional<TensorId>> gather_gradient(GradientBuilder& builder, const GradientRequest& request);

/// GatherGrad(dy, indices): adds the rows up where they came from, each device those of its own box of the table.
/// UnsortedSegmentSum(x, segment_ids) is the same with axis 0.
std::vector<TensorType> infer_scatter_add(const Operation& operation);
ShardingRule scatter_add_rule(const Operation& operation);
void scatter_add_kernel(const KernelCall& call);
std::vector<std::optional<TensorId>> segment_sum_gradient(GradientBuilder& builder, const GradientRequest& request);

/// OneHot(indices): a new dimension of `depth` at `axis`; its cut is computed from the box, without communication.
std::vector<TensorType> infer_one_hot(const Operation& operation);
ShardingRule one_hot_rule(const Operation& operation);
void one_hot_kernel(const KernelCall& call);

/// Range: start, start + delta, ... below limit, without operands.
std::vector<TensorType> infer_range(const Operation& operation);
ShardingRule range_rule(const Operation& operation);
void range_kernel(const KernelCall& call);

/// RotaryEmbedding(x, cos, sin): x * cos + (-x2, x1) * sin with the halves x1, x2 of the last dimension, which walks
/// (half, position): the positions may be cut. The Grad form is its transpose in x.
std::vector<TensorType> infer_rotary(const Operation& operation);
ShardingRule rotary_rule(const Operation& operation);
void rotary_kernel(const KernelCall& call);
void rotary_grad_kernel(const KernelCall& call);
std::vector<std::optional<TensorId>> rotary_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
