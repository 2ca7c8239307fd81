#include "operators/building/elementwise.h"

#include <fmt/format.h>

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

}  // namespace

Shape broadcast_all(const Operation& operation) {
  Shape shape;
  for (const TensorType& operand : operation.operands) shape = broadcast_shapes(operation, shape, operand.shape);
  return shape;
}

DataType common_type(const Operation& operation, std::size_t first) {
  const TensorType* chosen = &operation.operands[first];
  for (std::size_t i = first + 1; i < operation.operands.size(); ++i) {
    const TensorType& other = operation.operands[i];
    if (other.dtype == chosen->dtype) continue;
    const bool is_scalar = other.shape.empty();
    if (!is_scalar && !chosen->shape.empty()) dtype_error(operation, chosen->dtype, other.dtype);
    const TensorType& scalar = is_scalar ? other : *chosen;
    const TensorType& tensor = is_scalar ? *chosen : other;
    chosen = is_floating(scalar.dtype) && !is_floating(tensor.dtype) ? &scalar : &tensor;
  }
  return chosen->dtype;
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
  return {{broadcast_all(operation), common_type(operation, 0)}};
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
