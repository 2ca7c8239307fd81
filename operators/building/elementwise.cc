#include "operators/building/elementwise.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "operators/building/gradient_support.h"

namespace shardplan {
namespace {

/// By the operator "<name>Grad" of dy and what it reads.
Gradients gradient_from(GradientBuilder& builder, const GradientRequest& request, TensorId read) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  gradients[0] = add_one(builder, request.operation.type->name + "Grad", {*request.result_gradients[0], read},
                         request.operation.attributes);
  return gradients;
}

Gradients gradient_from_result(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_from(builder, request, request.results[0]);
}

Gradients gradient_from_operand(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_from(builder, request, request.operands[0]);
}

/// One type of operands from `first` on, where scalars give way unless one is floating and the tensors are not.
/// `combine(one, other)` is that of two tensors.
template <class Combine>
DataType type_of_all(const Operation& operation, std::size_t first, Combine combine) {
  const auto of_scalars = [](DataType one, DataType other) {
    return is_floating(other) && !is_floating(one) ? other : one;
  };
  std::optional<DataType> scalar, tensor;
  for (std::size_t i = first; i < operation.operands.size(); ++i) {
    const auto& [shape, dtype] = operation.operands[i];
    std::optional<DataType>& found = shape.empty() ? scalar : tensor;
    if (!found) {
      found = dtype;
    } else if (*found != dtype) {
      found = shape.empty() ? of_scalars(*found, dtype) : combine(*found, dtype);
    }
  }
  if (!tensor || !scalar) return tensor ? *tensor : *scalar;
  return of_scalars(*tensor, *scalar);
}

}  // namespace

Shape broadcast_all(const Operation& operation) {
  Shape shape;
  for (const TensorType& operand : operation.operands) shape = broadcast_shapes(operation, shape, operand.shape);
  return shape;
}

DataType common_type(const Operation& operation, std::size_t first) {
  return type_of_all(operation, first,
                     [&](DataType one, DataType other) -> DataType { dtype_error(operation, one, other); });
}

DataType promoted_type(const Operation& operation, std::size_t first) {
  return type_of_all(operation, first, [&](DataType one, DataType other) {
    if (!is_floating(one) || !is_floating(other)) dtype_error(operation, one, other);
    if (element_bytes(one) == element_bytes(other)) return DataType::kF32;
    return element_bytes(one) < element_bytes(other) ? other : one;
  });
}

ShardingRule elementwise_rule(const Operation& operation) {
  const Shape full = broadcast_all(operation);
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(full);
  for (const TensorType& operand : operation.operands) builder.operand(broadcast_walk(walk, full, operand.shape));
  for (std::size_t i = 0; i < operation.results.size(); ++i) builder.result(walk);
  return builder.build();
}

std::vector<TensorType> infer_like_first(const Operation& operation) { return {operation.operands[0]}; }

std::vector<TensorType> infer_broadcast(const Operation& operation) {
  return {{broadcast_all(operation), promoted_type(operation, 0)}};
}

void add_function(std::vector<OperatorType>& table, const ElementwiseFunction& function) {
  const bool reads_result = function.slope_reads_result;
  table.push_back({.name = function.name,
                   .signature = "x -> y",
                   .attributes = function.attributes,
                   .infer = infer_like_first,
                   .rule_text = "... -> ...",
                   .rule = elementwise_rule,
                   .monotone = function.is_monotone ? OperandGroups{{"x"}} : OperandGroups{},
                   .kernel = function.kernel,
                   .gradient = function.slope == nullptr ? nullptr
                               : reads_result            ? gradient_from_result
                                                         : gradient_from_operand,
                   .flops_per_point = function.flops});
  if (function.slope == nullptr) return;
  table.push_back({.name = function.name + "Grad",
                   .signature = reads_result ? "dy, y -> dx" : "dy, x -> dx",
                   .attributes = function.attributes,
                   .infer = infer_like_first,
                   .rule_text = "..., ... -> ...",
                   .rule = elementwise_rule,
                   .linear = {{"dy"}},
                   .kernel = function.slope,
                   .flops_per_point = function.slope_flops,
                   .is_internal = true});
}

}  // namespace shardplan
