#pragma once

#include "operators/building/strided_loop.h"
#include "operators/operator_type.h"

namespace shardplan {

/// Which partial operands an elementwise operator lets through.
enum class Passes {
  kNothing,
  kFirst,                    // linear in the first operand alone: x / c, dy * f'(x)
  kEach,                     // linear in each: x * y
  kFirstMonotone,            // max and min pass through the first: exp(x)
  kEachMonotone,             // max(x, y)
  kJointlyAndEachMonotone,   // x + y
  kJointlyAndFirstMonotone,  // x - y
  kLinearUnary,              // identity: sum, max and min
};

/// One operand; the result has its type.
std::vector<TensorType> infer_unary(const Operation& operation);
/// Operands broadcast to each other; all of one dtype, but a scalar takes the dtype of the others.
std::vector<TensorType> infer_broadcast(const Operation& operation);
/// The same with a bool result.
std::vector<TensorType> infer_comparison(const Operation& operation);
std::vector<TensorType> infer_logical(const Operation& operation);
std::vector<TensorType> infer_select(const Operation& operation);
std::vector<TensorType> infer_add_n(const Operation& operation);
std::vector<TensorType> infer_cast(const Operation& operation);
std::vector<TensorType> infer_bias_add(const Operation& operation);
std::vector<TensorType> infer_dropout(const Operation& operation);

ShardingRule elementwise_rule(const Operation& operation, Passes passes);
/// "linear in x1 and in x2", of these operands.
std::string partial_text(Passes passes, const std::vector<std::string>& operands);
template <Passes passes>
ShardingRule elementwise(const Operation& operation) {
  return elementwise_rule(operation, passes);
}
ShardingRule select_rule(const Operation& operation);
ShardingRule cast_rule(const Operation& operation);
ShardingRule bias_add_rule(const Operation& operation);

/// result = function(x).
template <auto function>
void unary(const KernelCall& call) {
  const OperandView& x = call.operands[0];
  const std::int64_t size = num_elements(x.shape);
  for (std::int64_t i = 0; i < size; ++i) call.results[0].data[i] = function(x.data[i]);
}

/// result = function(x1, x2), broadcast.
template <auto function>
void binary(const KernelCall& call) {
  const Shape& extents = call.results[0].shape;
  double* result = call.results[0].data;
  for_each_point<2>(
      extents, {broadcast_strides(call.operands[0].shape, extents), broadcast_strides(call.operands[1].shape, extents)},
      [&](const std::array<std::int64_t, 2>& at) {
        *result++ = function(call.operands[0].data[at[0]], call.operands[1].data[at[1]]);
      });
}

void select_kernel(const KernelCall& call);
void add_n_kernel(const KernelCall& call);
void cast_kernel(const KernelCall& call);
void bias_add_kernel(const KernelCall& call);
/// One run's share of a mean over `count` runs: x / count.
void accumulate_kernel(const KernelCall& call);
void gelu_kernel(const KernelCall& call);
void gelu_grad_kernel(const KernelCall& call);
/// Keeps an element with probability keep_prob, by (seed, global position), and divides it by keep_prob. The second
/// result is the mask. `KernelCall::seed` is to differ between the Dropouts of one graph and between steps, and to be
/// equal for the copy of one that recomputation makes.
void dropout_kernel(const KernelCall& call);
void dropout_grad_kernel(const KernelCall& call);

double sigmoid(double x);

/// Gradient by the operator "<Name>Grad" of (dy, y) or (dy, x).
std::vector<std::optional<TensorId>> gradient_from_result(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> gradient_from_operand(GradientBuilder& builder, const GradientRequest& request);

std::vector<std::optional<TensorId>> add_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> sub_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> mul_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> div_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> pow_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> maximum_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> select_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> neg_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> identity_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> cast_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> bias_add_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> dropout_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
