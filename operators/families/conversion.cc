#include "operators/families/conversion.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"

namespace shardplan {
namespace {

std::vector<TensorType> infer_cast(const Operation& operation) {
  const std::optional<DataType> type = parse_data_type(operation.text("dtype"));
  if (!type) {
    operand_error(operation,
                  fmt::format("unknown dtype '{}'; expected f64, f32, f16, bf16, f8e4m3, i64, i32, i8, u8 or bool",
                              operation.text("dtype")));
  }
  return {{operation.operands[0].shape, *type}};
}

/// A sum is that of its rounded summands only between floating types.
ShardingRule cast_rule(const Operation& operation) {
  ShardingRule rule = elementwise_rule(operation);
  if (is_floating(operation.operands[0].dtype) && is_floating(operation.results[0].dtype)) rule.linear = {{0}};
  rule.monotone = {{0}};
  return rule;
}

void cast_kernel(const KernelCall& call) {
  const DataType to = call.operation.results[0].dtype;
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double value = call.operands[0].data[i];
    call.results[0].data[i] = is_floating(to)         ? value
                              : to == DataType::kBool ? (value != 0 ? 1 : 0)
                                                      : std::trunc(value);
  }
}

Gradients cast_gradient(GradientBuilder& builder, const GradientRequest& request) {
  const DataType from = request.operation.operands[0].dtype;
  if (!is_floating(from)) return no_gradients(request);
  return gradient_of_first(request, [&](TensorId dy) {
    if (builder.type(dy).dtype == from) return dy;  // that of products in f8 has the type of their results
    return add_one(builder, "Cast", {dy}, {{"dtype", std::string(to_string(from))}});
  });
}

double same(double x) { return x; }

Gradients identity_gradient(GradientBuilder&, const GradientRequest& request) {
  return gradient_of_first(request, [](TensorId dy) { return dy; });
}

void accumulate_kernel(const KernelCall& call) {
  const auto count = static_cast<double>(call.operation.integer("count"));
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) call.results[0].data[i] = call.operands[0].data[i] / count;
}

OperatorType same_elements(std::string name) {
  return {.name = std::move(name),
          .signature = "x -> y",
          .infer = infer_like_first,
          .rule_text = "... -> ...",
          .rule = elementwise_rule,
          .linear = {{"x"}},
          .monotone = {{"x"}},
          .kernel = unary<same>,
          .work = WorkKind::kView,
          .flops_per_point = 0,
          .moves_elements = true};
}

OperatorType identity() {
  OperatorType type = same_elements("Identity");
  type.gradient = identity_gradient;
  return type;
}

OperatorType stop_gradient() {
  OperatorType type = same_elements("StopGradient");
  type.stops_gradient = true;
  type.notes = "training  y counts as a constant: nothing before it is trained through it";
  return type;
}

}  // namespace

std::vector<OperatorType> conversion_operators() {
  return {
      {.name = "Cast",
       .signature = "x -> y",
       .attributes = {text("dtype", std::nullopt, "the result's type")},
       .infer = infer_cast,
       .rule_text = "... -> ...",
       .rule = cast_rule,
       .kernel = cast_kernel,
       .gradient = cast_gradient,
       .role = OperatorRole::kConversion,
       .moves_elements = true,
       .notes = "linear and monotone in x; only monotone to or from integers"},
      identity(),
      stop_gradient(),
      {.name = "Accumulate",
       .signature = "x -> sum",
       .attributes = {text("dtype", std::nullopt, "the sum's type"),
                      integer("count", std::nullopt, "of runs: each adds x / count")},
       .infer = infer_cast,
       .rule_text = "... -> ...",
       .rule = elementwise_rule,
       .linear = {{"x"}},
       .kernel = accumulate_kernel,
       .flops_per_point = 2,
       .is_internal = true,
       .accumulates = true},
  };
}

}  // namespace shardplan
