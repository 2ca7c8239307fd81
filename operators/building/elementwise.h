#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"
#include "operators/operator_type.h"

namespace shardplan {

/// What elementwise operators share: each dimension of the (broadcast) result is one factor, named by position, and an
/// operand walks those in which it is not broadcast.
ShardingRule elementwise_rule(const Operation& operation);

/// One operand; the result has its type.
std::vector<TensorType> infer_like_first(const Operation& operation);
/// Operands broadcast to each other; the result has their `promoted_type`.
std::vector<TensorType> infer_broadcast(const Operation& operation);

/// The shape to which all operands broadcast; InputError if they do not.
Shape broadcast_all(const Operation& operation);
/// The dtype of operands from `first` on: one for all, but scalars give way, unless a floating scalar meets integers.
DataType common_type(const Operation& operation, std::size_t first);
/// The same for operators that take several floating types, as PyTorch's and MindSpore's do: the widest of them, or f32
/// for two of one width.
DataType promoted_type(const Operation& operation, std::size_t first);

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

/// A function of one operand and its derivative.
struct ElementwiseFunction {
  std::string name;
  Kernel kernel = nullptr;  // y of x
  Kernel slope = nullptr;   // dx of dy and x, or of dy and y; null: not differentiable
  bool slope_reads_result = false;
  bool is_monotone = false;
  std::vector<AttributeSpec> attributes = {};  // the operator's and its gradient's
  double flops = 1;
  double slope_flops = 1;
};

/// The operators of a function: itself and, if it has a slope, "<name>Grad" of (dy, x) or (dy, y).
void add_function(std::vector<OperatorType>& table, const ElementwiseFunction& function);

}  // namespace shardplan
