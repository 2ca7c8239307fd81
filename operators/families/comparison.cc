#include "operators/families/comparison.h"

#include <fmt/format.h>

#include <utility>

#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"

namespace shardplan {
namespace {

double truth(bool value) { return value ? 1 : 0; }
double equal(double a, double b) { return truth(a == b); }
double not_equal(double a, double b) { return truth(a != b); }
double less(double a, double b) { return truth(a < b); }
double less_equal(double a, double b) { return truth(a <= b); }
double greater(double a, double b) { return truth(a > b); }
double greater_equal(double a, double b) { return truth(a >= b); }
double logical_and(double a, double b) { return truth(a != 0 && b != 0); }
double logical_or(double a, double b) { return truth(a != 0 || b != 0); }
double logical_not(double x) { return truth(x == 0); }

std::vector<TensorType> infer_comparison(const Operation& operation) {
  (void)promoted_type(operation, 0);
  return {{broadcast_all(operation), DataType::kBool}};
}

std::vector<TensorType> infer_logical(const Operation& operation) {
  for (const TensorType& operand : operation.operands) {
    if (operand.dtype != DataType::kBool) {
      operand_error(operation, fmt::format("needs bool inputs, found {}", to_string(operand.dtype)));
    }
  }
  return {{broadcast_all(operation), DataType::kBool}};
}

std::vector<TensorType> infer_select(const Operation& operation) {
  if (operation.operands[0].dtype != DataType::kBool) {
    operand_error(operation, fmt::format("condition is {}; expected bool", to_string(operation.operands[0].dtype)));
  }
  return {{broadcast_all(operation), promoted_type(operation, 1)}};
}

void select_kernel(const KernelCall& call) {
  const Shape& extents = call.results[0].shape;
  double* result = call.results[0].data;
  for_each_point<3>(
      extents,
      {broadcast_strides(call.operands[0].shape, extents), broadcast_strides(call.operands[1].shape, extents),
       broadcast_strides(call.operands[2].shape, extents)},
      [&](const std::array<std::int64_t, 3>& at) {
        *result++ = call.operands[0].data[at[0]] != 0 ? call.operands[1].data[at[1]] : call.operands[2].data[at[2]];
      });
}

Gradients select_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  for (std::size_t i = 1; i < 3; ++i) {
    if (!request.needed[i]) continue;
    const TensorId zero = builder.constant(0);
    const TensorId taken = i == 1 ? add_one(builder, "Select", {request.operands[0], dy, zero})
                                  : add_one(builder, "Select", {request.operands[0], zero, dy});
    gradients[i] = sum_to(builder, taken, request.operation.operands[i].shape);
  }
  return gradients;
}

/// y = function(x1, x2), broadcast, of type bool.
OperatorType truth_operator(std::string name, Kernel kernel,
                            std::vector<TensorType> (*infer)(const Operation&) = infer_comparison) {
  return {.name = std::move(name),
          .signature = "x1, x2 -> y",
          .infer = infer,
          .rule_text = "..., ... -> ...",
          .rule = elementwise_rule,
          .kernel = kernel,
          .notes = "strategy  equal dimensions are sharded in the same way, broadcast ones are not sharded"};
}

}  // namespace

std::vector<OperatorType> comparison_operators() {
  return {
      truth_operator("Equal", binary<equal>),
      truth_operator("NotEqual", binary<not_equal>),
      truth_operator("Less", binary<less>),
      truth_operator("LessEqual", binary<less_equal>),
      truth_operator("Greater", binary<greater>),
      truth_operator("GreaterEqual", binary<greater_equal>),
      truth_operator("LogicalAnd", binary<logical_and>, infer_logical),
      truth_operator("LogicalOr", binary<logical_or>, infer_logical),
      {.name = "LogicalNot",
       .signature = "x -> y",
       .infer = infer_logical,
       .rule_text = "... -> ...",
       .rule = elementwise_rule,
       .kernel = unary<logical_not>},
      {.name = "Select",
       .signature = "condition, x, y -> z",
       .infer = infer_select,
       .rule_text = "..., ..., ... -> ...",
       .rule = elementwise_rule,
       .linear = {{"x", "y"}},
       .monotone = {{"x", "y"}, {"x"}, {"y"}},
       .kernel = select_kernel,
       .gradient = select_gradient},
  };
}

}  // namespace shardplan
