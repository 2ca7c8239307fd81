#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// Conv2D(x [n, c, h, w], weight [out, c / group, kh, kw]), NCHW. Heights and widths of the result are factors that x
/// reads through windows: cut, x needs a halo.
std::vector<TensorType> infer_conv2d(const Operation& operation);
ShardingRule conv2d_rule(const Operation& operation);
void conv2d_kernel(const KernelCall& call);

/// Conv2DBackpropInput(dy, weight): the gradient of x; dy needs a halo.
std::vector<TensorType> infer_conv2d_backprop_input(const Operation& operation);
ShardingRule conv2d_backprop_input_rule(const Operation& operation);
void conv2d_backprop_input_kernel(const KernelCall& call);
double conv2d_backprop_input_flops(const Operation& operation);

/// Conv2DBackpropFilter(dy, x): the gradient of the weight, a sum over batch and positions.
std::vector<TensorType> infer_conv2d_backprop_filter(const Operation& operation);
ShardingRule conv2d_backprop_filter_rule(const Operation& operation);
void conv2d_backprop_filter_kernel(const KernelCall& call);

std::vector<std::optional<TensorId>> conv2d_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
