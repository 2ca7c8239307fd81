// Every norm is written once, as its phases; unsharded, they run in sequence as one kernel. A phase is a statistic or
// elementwise with the statistics broadcast (building/statistics.h). Variances are the means of squared distances from
// the mean, a second statistic: sums of squares would lose half of the digits in float32.
#include "operators/families/normalisation.h"

#include <fmt/format.h>

#include <cmath>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"
#include "operators/building/statistics.h"

namespace shardplan {
namespace {

std::vector<std::int64_t> axes_from(std::size_t first, std::size_t rank) {
  std::vector<std::int64_t> axes;
  for (std::size_t d = first; d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d));
  return axes;
}

/// The shape of x; in gradients that of dy, which is the same.
const Shape& x_shape(const Operation& operation) { return operation.operands[0].shape; }

std::size_t begin_norm_axis(const Operation& operation) {
  return normal_axis(operation, operation.integer("begin_norm_axis"), x_shape(operation).size());
}
std::size_t begin_params_axis(const Operation& operation) {
  return normal_axis(operation, operation.integer("begin_params_axis"), x_shape(operation).size());
}

void check_parameter(const Operation& operation, std::size_t operand, std::size_t first) {
  const Shape& x = x_shape(operation);
  const Shape wanted(x.begin() + static_cast<std::ptrdiff_t>(first), x.end());
  if (operation.operands[operand].shape != wanted) {
    operand_error(
        operation,
        fmt::format("{} is {}; expected {}, the last dimensions of {}", operation.type->signature.operands[operand],
                    to_string(operation.operands[operand].shape), to_string(wanted), to_string(x)));
  }
}

/// The rule of a norm: leading dimensions, the normalised ones from `begin_norm` on, parameters from `begin_params` on.
ShardingRule norm_rule(const Operation& operation, std::size_t begin_norm, std::size_t begin_params, bool is_gradient) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(x_shape(operation));
  for (std::size_t d = 0; d < x.size(); ++d) {
    if (is_gradient && d < begin_params) builder.set_kind(x[d], FactorKind::kReduction);
    if (d >= begin_norm) builder.set_kind(x[d], FactorKind::kNormalised);
  }
  add_broadcast_operands(builder, operation, x);
  for (const TensorType& result : operation.results)
    builder.result(broadcast_walk(x, x_shape(operation), result.shape));
  return builder.build();
}

Attributes epsilon_of(const Operation& operation) { return {{"epsilon", operation.number("epsilon")}}; }

/// Serves all norms: the operator "<name>Grad" of (dy, x, gamma).
Gradients norm_gradient(GradientBuilder& builder, const GradientRequest& request) {
  if (!request.result_gradients[0]) return no_gradients(request);
  return needed_gradients(request,
                          builder.add(request.operation.type->name + "Grad", request.operation.attributes,
                                      {*request.result_gradients[0], request.operands[0], request.operands[1]}));
}

// ---- LayerNorm

/// The attribute `axis` of the statistics.
Attributes over_last(const Operation& operation, std::size_t first) {
  return {{"axis", axes_from(first, x_shape(operation).size())}};
}
Attributes over_last_kept(const Operation& operation, std::size_t first) {
  Attributes attributes = over_last(operation, first);
  attributes["keep_dims"] = true;
  return attributes;
}

std::vector<TensorType> infer_layer_norm(const Operation& operation) {
  const std::size_t begin_params = begin_params_axis(operation);
  if (begin_params > begin_norm_axis(operation)) {
    operand_error(operation, fmt::format("begin_params_axis {} lies behind begin_norm_axis {}", begin_params,
                                         begin_norm_axis(operation)));
  }
  check_parameter(operation, 1, begin_params);
  check_parameter(operation, 2, begin_params);
  return {operation.operands[0]};
}

ShardingRule layer_norm_rule(const Operation& operation) {
  return norm_rule(operation, begin_norm_axis(operation), begin_params_axis(operation), false);
}

Phases layer_norm_phases(const Operation& operation, std::span<const std::int64_t>) {
  const std::size_t first = begin_norm_axis(operation);
  return make_phases(operation, {{"mean = ReduceMean(x)", over_last_kept(operation, first)},
                                 {"variance = CentredSquareMean(x, mean)", over_last(operation, first)},
                                 {"y = LayerNormApply(x, gamma, beta, mean, variance)", epsilon_of(operation)}});
}

std::vector<TensorType> infer_layer_norm_grad(const Operation& operation) {
  return {operation.operands[1], operation.operands[2], operation.operands[2]};
}

ShardingRule layer_norm_grad_rule(const Operation& operation) {
  return norm_rule(operation, begin_norm_axis(operation), begin_params_axis(operation), true);
}

Phases layer_norm_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  const std::size_t first = begin_norm_axis(operation);
  Attributes means = over_last(operation, first);
  means.merge(epsilon_of(operation));
  return make_phases(operation, {{"mean = ReduceMean(x)", over_last_kept(operation, first)},
                                 {"variance = CentredSquareMean(x, mean)", over_last(operation, first)},
                                 {"m1, m2 = LayerNormGradMeans(dy, x, gamma, mean, variance)", means},
                                 {"dx, dgamma, dbeta = LayerNormGradApply(dy, x, gamma, mean, variance, m1, m2)",
                                  epsilon_of(operation)}});
}

std::vector<TensorType> infer_norm_grad_apply(const Operation& operation) {
  std::vector<TensorType> results = {operation.operands[1]};
  while (results.size() < operation.type->signature.results.size()) results.push_back(operation.operands[2]);
  return results;
}

/// dx walks everything; the gradients of the parameters are sums over the leading dimensions.
ShardingRule norm_grad_apply_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  const std::size_t lead = shape.size() - operation.operands[2].shape.size();
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(shape);
  for (std::size_t d = 0; d < lead; ++d) builder.set_kind(x[d], FactorKind::kReduction);
  add_broadcast_operands(builder, operation, x);
  for (const TensorType& result : operation.results) builder.result(broadcast_walk(x, shape, result.shape));
  return builder.build();
}

void centred_square_mean_kernel(const KernelCall& call) {
  add_terms<2>(call, 0, [&](const auto& value) { return (value(0) - value(1)) * (value(0) - value(1)); });
  divide_by_count(call, 0);
}

/// (x, gamma, beta, mean, variance).
void layer_norm_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<5>(call, [&](const auto& value) {
    return (value(0) - value(3)) / std::sqrt(value(4) + epsilon) * value(1) + value(2);
  });
}

/// (dy, x, gamma, mean, variance) -> the means of dy * gamma and of dy * gamma * xhat, xhat being the normalised x.
void layer_norm_grad_means_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  add_terms<3>(call, 0, [&](const auto& value) { return value(0) * value(2); });
  add_terms<5>(call, 1, [&](const auto& value) {
    return value(0) * value(2) * (value(1) - value(3)) / std::sqrt(value(4) + epsilon);
  });
  divide_by_count(call, 0);
  divide_by_count(call, 1);
}

/// (dy, x, gamma, mean, variance, m1, m2) -> dx = (dy * gamma - m1 - xhat * m2) / sigma, sum of dy * xhat, sum of dy.
void layer_norm_grad_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<7>(call, [&](const auto& value) {
    const double sigma = std::sqrt(value(4) + epsilon);
    return (value(0) * value(2) - value(5) - (value(1) - value(3)) / sigma * value(6)) / sigma;
  });
  add_terms<5>(call, 1,
               [&](const auto& value) { return value(0) * (value(1) - value(3)) / std::sqrt(value(4) + epsilon); });
  add_terms<1>(call, 2, [](const auto& value) { return value(0); });
}

// ---- RmsNorm

std::size_t rms_first(const Operation& operation) {
  const std::size_t rank = x_shape(operation).size();
  const std::size_t params = operation.operands.back().shape.size();
  if (params == 0 || params > rank) {
    operand_error(operation, fmt::format("gamma is {}; expected the last dimensions of {}",
                                         to_string(operation.operands.back().shape), to_string(x_shape(operation))));
  }
  return rank - params;
}

std::vector<TensorType> infer_rms_norm(const Operation& operation) {
  check_parameter(operation, 1, rms_first(operation));
  return {operation.operands[0]};
}

ShardingRule rms_norm_rule(const Operation& operation) {
  return norm_rule(operation, rms_first(operation), rms_first(operation), false);
}

Phases rms_norm_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation, {{"square_mean = SquareMean(x)", over_last(operation, rms_first(operation))},
                                 {"y = RmsNormApply(x, gamma, square_mean)", epsilon_of(operation)}});
}

std::vector<TensorType> infer_rms_norm_grad(const Operation& operation) {
  return {operation.operands[1], operation.operands[2]};
}

ShardingRule rms_norm_grad_rule(const Operation& operation) {
  return norm_rule(operation, rms_first(operation), rms_first(operation), true);
}

Phases rms_norm_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  const Attributes axis = over_last(operation, rms_first(operation));
  return make_phases(operation,
                     {{"square_mean = SquareMean(x)", axis},
                      {"mean = RmsNormGradMean(dy, x, gamma)", axis},
                      {"dx, dgamma = RmsNormGradApply(dy, x, gamma, square_mean, mean)", epsilon_of(operation)}});
}

void square_mean_kernel(const KernelCall& call) {
  add_terms<1>(call, 0, [&](const auto& value) { return value(0) * value(0); });
  divide_by_count(call, 0);
}

/// (x, gamma, mean of squares).
void rms_norm_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<3>(call, [&](const auto& value) { return value(0) / std::sqrt(value(2) + epsilon) * value(1); });
}

/// (dy, x, gamma) -> the mean of dy * gamma * x.
void rms_norm_grad_mean_kernel(const KernelCall& call) {
  add_terms<3>(call, 0, [&](const auto& value) { return value(0) * value(1) * value(2); });
  divide_by_count(call, 0);
}

/// (dy, x, gamma, mean of squares, m) -> dx = (dy * gamma - x * m / rms^2) / rms, sum of dy * x / rms.
void rms_norm_grad_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<5>(call, [&](const auto& value) {
    const double square = value(3) + epsilon;
    return (value(0) * value(2) - value(1) * value(4) / square) / std::sqrt(square);
  });
  add_terms<4>(call, 1, [&](const auto& value) { return value(0) * value(1) / std::sqrt(value(3) + epsilon); });
}

std::vector<AttributeSpec> norm_attributes() {
  return {integer("begin_norm_axis", -1, "first normalised dimension"),
          integer("begin_params_axis", -1, "first dimension of gamma and beta"), epsilon(1e-5)};
}

}  // namespace

std::vector<OperatorType> normalisation_operators() {
  return {
      {.name = "LayerNorm",
       .signature = "x, gamma, beta -> y",
       .attributes = norm_attributes(),
       .infer = infer_layer_norm,
       .rule_text = "... k, k, k -> ... k; k: normalised",
       .rule = layer_norm_rule,
       .phases = layer_norm_phases,
       .gradient = norm_gradient,
       .flops_per_point = 8,
       .role = OperatorRole::kTokenNorm,
       .scales = {"gamma"}},
      {.name = "LayerNormGrad",
       .signature = "dy, x, gamma -> dx, dgamma, dbeta",
       .attributes = norm_attributes(),
       .infer = infer_layer_norm_grad,
       .rule_text = "... k, ... k, k -> ... k, k, k; k: normalised; ...: sum",
       .rule = layer_norm_grad_rule,
       .phases = layer_norm_grad_phases,
       .flops_per_point = 16,
       .is_internal = true},
      statistic("CentredSquareMean", "x, mean -> variance", "... k, ... 1 -> ... 1; k: sum",
                centred_square_mean_kernel),
      elementwise_phase("LayerNormApply", "x, gamma, beta, mean, variance -> y", {epsilon(1e-5)},
                        "... k, k, k, ... 1, ... 1 -> ... k", layer_norm_apply_kernel),
      {.name = "LayerNormGradMeans",
       .signature = "dy, x, gamma, mean, variance -> m1, m2",
       .attributes = {list("axis", std::nullopt, "the normalised dimensions"), epsilon(1e-5)},
       .infer = infer_statistics,
       .rule_text = "... k, ... k, k, ... 1, ... 1 -> ... 1, ... 1; k: sum",
       .rule = statistic_rule,
       .kernel = layer_norm_grad_means_kernel,
       .flops_per_point = 6,
       .is_internal = true},
      {.name = "LayerNormGradApply",
       .signature = "dy, x, gamma, mean, variance, m1, m2 -> dx, dgamma, dbeta",
       .attributes = {epsilon(1e-5)},
       .infer = infer_norm_grad_apply,
       .rule_text = "... k, ... k, k, ... 1, ... 1, ... 1, ... 1 -> ... k, k, k; ...: sum",
       .rule = norm_grad_apply_rule,
       .kernel = layer_norm_grad_apply_kernel,
       .flops_per_point = 10,
       .is_internal = true},
      {.name = "RmsNorm",
       .signature = "x, gamma -> y",
       .attributes = {epsilon(1e-6)},
       .infer = infer_rms_norm,
       .rule_text = "... k, k -> ... k; k: normalised",
       .rule = rms_norm_rule,
       .phases = rms_norm_phases,
       .gradient = norm_gradient,
       .flops_per_point = 6,
       .role = OperatorRole::kTokenNorm,
       .scales = {"gamma"}},
      {.name = "RmsNormGrad",
       .signature = "dy, x, gamma -> dx, dgamma",
       .attributes = {epsilon(1e-6)},
       .infer = infer_rms_norm_grad,
       .rule_text = "... k, ... k, k -> ... k, k; k: normalised; ...: sum",
       .rule = rms_norm_grad_rule,
       .phases = rms_norm_grad_phases,
       .flops_per_point = 12,
       .is_internal = true},
      statistic("SquareMean", "x -> mean", "... k -> ... 1; k: sum", square_mean_kernel),
      elementwise_phase("RmsNormApply", "x, gamma, square_mean -> y", {epsilon(1e-6)}, "... k, k, ... 1 -> ... k",
                        rms_norm_apply_kernel),
      statistic("RmsNormGradMean", "dy, x, gamma -> mean", "... k, ... k, k -> ... 1; k: sum",
                rms_norm_grad_mean_kernel),
      {.name = "RmsNormGradApply",
       .signature = "dy, x, gamma, square_mean, mean -> dx, dgamma",
       .attributes = {epsilon(1e-6)},
       .infer = infer_norm_grad_apply,
       .rule_text = "... k, ... k, k, ... 1, ... 1 -> ... k, k; ...: sum",
       .rule = norm_grad_apply_rule,
       .kernel = rms_norm_grad_apply_kernel,
       .flops_per_point = 8,
       .is_internal = true},
  };
}

}  // namespace shardplan
