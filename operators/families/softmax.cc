#include "operators/families/softmax.h"

#include <cmath>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"
#include "operators/building/statistics.h"

namespace shardplan {
namespace {

std::size_t softmax_axis(const Operation& operation) {
  return normal_axis(operation, operation.integer("axis"), operation.operands[0].shape.size());
}

std::vector<TensorType> infer_softmax(const Operation& operation) {
  (void)softmax_axis(operation);
  return {operation.operands[0]};
}

ShardingRule softmax_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  builder.set_kind(x[softmax_axis(operation)], FactorKind::kNormalised);
  for (std::size_t i = 0; i < operation.operands.size(); ++i) builder.operand(x);
  builder.result(x);
  return builder.build();
}

/// The attribute `axis` of the statistics.
Attributes over_axis(const Operation& operation) {
  return {{"axis", std::vector<std::int64_t>{static_cast<std::int64_t>(softmax_axis(operation))}}};
}
Attributes over_kept_axis(const Operation& operation) {
  Attributes attributes = over_axis(operation);
  attributes["keep_dims"] = true;
  return attributes;
}

Phases softmax_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation, {{"max = ReduceMax(x)", over_kept_axis(operation)},
                                 {"exp, sum = SoftmaxExp(x, max)", over_axis(operation)},
                                 {"y = RealDiv(exp, sum)"}});
}

Phases log_softmax_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation, {{"max = ReduceMax(x)", over_kept_axis(operation)},
                                 {"sum = ExpSum(x, max)", over_axis(operation)},
                                 {"y = LogSoftmaxApply(x, max, sum)"}});
}

Phases softmax_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation,
                     {{"sum = ProductSum(dy, y)", over_axis(operation)}, {"dx = SoftmaxGradApply(dy, y, sum)"}});
}

Phases log_softmax_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation,
                     {{"sum = ReduceSum(dy)", over_kept_axis(operation)}, {"dx = LogSoftmaxGradApply(dy, y, sum)"}});
}

/// Serves Softmax and LogSoftmax: the operator "<name>Grad" of (dy, y).
Gradients softmax_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    return add_one(builder, request.operation.type->name + "Grad", {dy, request.results[0]},
                   request.operation.attributes);
  });
}

// ---- phases

void exp_sum_kernel(const KernelCall& call) {
  add_terms<2>(call, 0, [](const auto& value) { return std::exp(value(0) - value(1)); });
}

std::vector<TensorType> infer_exp_and_sum(const Operation& operation) {
  return {operation.operands[0], {kept_shape(operation), operation.operands[0].dtype}};
}

void exp_and_sum_kernel(const KernelCall& call) {
  set_values<2>(call, [](const auto& value) { return std::exp(value(0) - value(1)); });
  add_terms<1>(call, 1, [&](const auto& value) { return call.results[0].data[value.offsets[0]]; });
}

void product_sum_kernel(const KernelCall& call) {
  add_terms<2>(call, 0, [](const auto& value) { return value(0) * value(1); });
}

/// y * (dy - sum(dy * y)).
void softmax_grad_apply_kernel(const KernelCall& call) {
  set_values<3>(call, [](const auto& value) { return value(1) * (value(0) - value(2)); });
}

void log_softmax_apply_kernel(const KernelCall& call) {
  set_values<3>(call, [](const auto& value) { return value(0) - value(1) - std::log(value(2)); });
}

/// dy - exp(y) * sum(dy).
void log_softmax_grad_apply_kernel(const KernelCall& call) {
  set_values<3>(call, [](const auto& value) { return value(0) - std::exp(value(1)) * value(2); });
}

OperatorType softmax(std::string name, PhasesOf phases) {
  return {.name = std::move(name),
          .signature = "x -> y",
          .attributes = {integer("axis", -1, "the normalised dimension")},
          .infer = infer_softmax,
          .rule_text = "... k -> ... k; k: normalised",
          .rule = softmax_rule,
          .phases = phases,
          .gradient = softmax_gradient,
          .flops_per_point = 5};
}

OperatorType softmax_grad(std::string name, PhasesOf phases) {
  return {.name = std::move(name),
          .signature = "dy, y -> dx",
          .attributes = {integer("axis", -1, "the normalised dimension")},
          .infer = infer_softmax,
          .rule_text = "... k, ... k -> ... k; k: normalised",
          .rule = softmax_rule,
          .phases = phases,
          .flops_per_point = 4,
          .is_internal = true};
}

}  // namespace

std::vector<OperatorType> softmax_operators() {
  return {
      softmax("Softmax", softmax_phases),
      softmax_grad("SoftmaxGrad", softmax_grad_phases),
      {.name = "SoftmaxExp",
       .signature = "x, max -> exp, sum",
       .attributes = {list("axis", std::nullopt, "the normalised dimension")},
       .infer = infer_exp_and_sum,
       .rule_text = "... k, ... 1 -> ... k, ... 1; k: sum",
       .rule = statistic_rule,
       .kernel = exp_and_sum_kernel,
       .flops_per_point = 3,
       .is_internal = true},
      statistic("ProductSum", "x1, x2 -> sum", "... k, ... k -> ... 1; k: sum", product_sum_kernel),
      elementwise_phase("SoftmaxGradApply", "dy, y, sum -> dx", {}, "... k, ... k, ... 1 -> ... k",
                        softmax_grad_apply_kernel),
      softmax("LogSoftmax", log_softmax_phases),
      softmax_grad("LogSoftmaxGrad", log_softmax_grad_phases),
      statistic("ExpSum", "x, max -> sum", "... k, ... 1 -> ... 1; k: sum", exp_sum_kernel),
      elementwise_phase("LogSoftmaxApply", "x, max, sum -> y", {}, "... k, ... 1, ... 1 -> ... k",
                        log_softmax_apply_kernel),
      elementwise_phase("LogSoftmaxGradApply", "dy, y, sum -> dx", {}, "... k, ... k, ... 1 -> ... k",
                        log_softmax_grad_apply_kernel),
  };
}

}  // namespace shardplan
