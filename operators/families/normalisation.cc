// Every operator here is written once, as its phases; uncut, `run_phases` runs them one after the other. A phase is
// either a statistic (a reduction of the first operand's shape over `axis`, those dimensions kept as 1) or elementwise
// with the statistics broadcast, so that two rules serve all of them. Means divide by the global count, so their
// partial results add up. Variances are the means of squared distances from the mean, a second statistic: sums of
// squares would lose half of the digits in float32.
#include "operators/families/normalisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

std::size_t softmax_axis(const Operation& operation) {
  return normal_axis(operation, operation.integer("axis"), operation.operands[0].shape.size());
}

std::vector<std::int64_t> axes_from(std::size_t first, std::size_t rank) {
  std::vector<std::int64_t> axes;
  for (std::size_t d = first; d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d));
  return axes;
}

/// Of x, or in gradients of dy, which is shaped alike.
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
        fmt::format("{} is {}; expected {}, the last dimensions of {}", operation.type->operand_names[operand],
                    to_string(operation.operands[operand].shape), to_string(wanted), to_string(x)));
  }
}

Shape kept_shape(const Operation& operation) {
  Shape shape = operation.operands[0].shape;
  for (const std::size_t axis : normal_axes(operation, operation.list("axis"), shape.size())) shape[axis] = 1;
  return shape;
}

double global_count(const KernelCall& call) {
  return static_cast<double>(num_elements(call.operation.operands[0].shape) /
                             num_elements(call.operation.results[0].shape));
}

/// Adds `term(offsets of the N operands)` of every point of the first operand up in the first result.
template <std::size_t N, class Term>
void add_terms(const KernelCall& call, std::size_t result, Term term) {
  const Shape& extents = call.operands[0].shape;
  std::array<Shape, N + 1> strides;
  for (std::size_t i = 0; i < N; ++i) strides[i] = broadcast_strides(call.operands[i].shape, extents);
  strides[N] = broadcast_strides(call.results[result].shape, extents);
  for_each_point<N + 1>(extents, strides, [&](const std::array<std::int64_t, N + 1>& at) {
    call.results[result].data[at[N]] += term(at);
  });
}

/// Sets every point of the first result, which has the shape of the first operand.
template <std::size_t N, class Value>
void set_values(const KernelCall& call, Value value) {
  const Shape& extents = call.operands[0].shape;
  std::array<Shape, N> strides;
  for (std::size_t i = 0; i < N; ++i) strides[i] = broadcast_strides(call.operands[i].shape, extents);
  double* result = call.results[0].data;
  for_each_point<N>(extents, strides, [&](const std::array<std::int64_t, N>& at) { *result++ = value(at); });
}

/// The value of an operand at its offset of the current point.
template <class Offsets>
auto reader(const KernelCall& call, const Offsets& at) {
  return [&](std::size_t operand) { return call.operands[operand].data[at[operand]]; };
}

void divide_by_count(const KernelCall& call, std::size_t result) {
  const double count = global_count(call);
  const std::int64_t size = num_elements(call.results[result].shape);
  for (std::int64_t i = 0; i < size; ++i) call.results[result].data[i] /= count;
}

/// Operands that broadcast to the first one.
void add_broadcast_operands(RuleBuilder& builder, const Operation& operation, const TensorWalk& walk) {
  for (const TensorType& operand : operation.operands) {
    builder.operand(broadcast_walk(walk, operation.operands[0].shape, operand.shape));
  }
}

/// The rule of a norm: leading dimensions `lead`, the normalised ones from `first` on.
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

std::size_t rms_first(const Operation& operation) {
  const std::size_t rank = x_shape(operation).size();
  const std::size_t params = operation.operands.back().shape.size();
  if (params == 0 || params > rank) {
    operand_error(operation, fmt::format("gamma is {}; expected the last dimensions of {}",
                                         to_string(operation.operands.back().shape), to_string(x_shape(operation))));
  }
  return rank - params;
}

}  // namespace

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

Phases softmax_phases(const Operation& operation) {
  const std::vector<std::int64_t> axis = {static_cast<std::int64_t>(softmax_axis(operation))};
  return {{{"ReduceMax", {{"axis", axis}, {"keep_dims", true}}, {0}},
           {"SoftmaxExp", {{"axis", axis}}, {0, 1}},
           {"RealDiv", {}, {2, 3}}},
          {4}};
}

Phases log_softmax_phases(const Operation& operation) {
  const std::vector<std::int64_t> axis = {static_cast<std::int64_t>(softmax_axis(operation))};
  return {{{"ReduceMax", {{"axis", axis}, {"keep_dims", true}}, {0}},
           {"ExpSum", {{"axis", axis}}, {0, 1}},
           {"LogSoftmaxApply", {}, {0, 1, 2}}},
          {3}};
}

Phases softmax_grad_phases(const Operation& operation) {
  const std::vector<std::int64_t> axis = {static_cast<std::int64_t>(softmax_axis(operation))};
  return {{{"ProductSum", {{"axis", axis}}, {0, 1}}, {"SoftmaxGradApply", {}, {0, 1, 2}}}, {3}};
}

Phases log_softmax_grad_phases(const Operation& operation) {
  const std::vector<std::int64_t> axis = {static_cast<std::int64_t>(softmax_axis(operation))};
  return {{{"ReduceSum", {{"axis", axis}, {"keep_dims", true}}, {0}}, {"LogSoftmaxGradApply", {}, {0, 1, 2}}}, {3}};
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

Phases layer_norm_phases(const Operation& operation) {
  const std::vector<std::int64_t> axes = axes_from(begin_norm_axis(operation), x_shape(operation).size());
  return {{{"ReduceMean", {{"axis", axes}, {"keep_dims", true}}, {0}},
           {"CentredSquareMean", {{"axis", axes}}, {0, 3}},
           {"LayerNormApply", {{"epsilon", operation.number("epsilon")}}, {0, 1, 2, 3, 4}}},
          {5}};
}

std::vector<TensorType> infer_layer_norm_grad(const Operation& operation) {
  return {operation.operands[1], operation.operands[2], operation.operands[2]};
}

ShardingRule layer_norm_grad_rule(const Operation& operation) {
  return norm_rule(operation, begin_norm_axis(operation), begin_params_axis(operation), true);
}

Phases layer_norm_grad_phases(const Operation& operation) {
  const std::vector<std::int64_t> axes = axes_from(begin_norm_axis(operation), x_shape(operation).size());
  const Attributes epsilon = {{"epsilon", operation.number("epsilon")}};
  Attributes means = epsilon;
  means["axis"] = axes;
  return {{{"ReduceMean", {{"axis", axes}, {"keep_dims", true}}, {1}},
           {"CentredSquareMean", {{"axis", axes}}, {1, 3}},
           {"LayerNormGradMeans", means, {0, 1, 2, 3, 4}},
           {"LayerNormGradApply", epsilon, {0, 1, 2, 3, 4, 5, 6}}},
          {7, 8, 9}};
}

std::vector<TensorType> infer_rms_norm(const Operation& operation) {
  check_parameter(operation, 1, rms_first(operation));
  return {operation.operands[0]};
}

ShardingRule rms_norm_rule(const Operation& operation) {
  return norm_rule(operation, rms_first(operation), rms_first(operation), false);
}

Phases rms_norm_phases(const Operation& operation) {
  const std::vector<std::int64_t> axes = axes_from(rms_first(operation), x_shape(operation).size());
  return {
      {{"SquareMean", {{"axis", axes}}, {0}}, {"RmsNormApply", {{"epsilon", operation.number("epsilon")}}, {0, 1, 2}}},
      {3}};
}

std::vector<TensorType> infer_rms_norm_grad(const Operation& operation) {
  return {operation.operands[1], operation.operands[2]};
}

ShardingRule rms_norm_grad_rule(const Operation& operation) {
  return norm_rule(operation, rms_first(operation), rms_first(operation), true);
}

Phases rms_norm_grad_phases(const Operation& operation) {
  const std::vector<std::int64_t> axes = axes_from(rms_first(operation), x_shape(operation).size());
  return {{{"SquareMean", {{"axis", axes}}, {1}},
           {"RmsNormGradMean", {{"axis", axes}}, {0, 1, 2}},
           {"RmsNormGradApply", {{"epsilon", operation.number("epsilon")}}, {0, 1, 2, 3, 4}}},
          {5, 6}};
}

std::vector<TensorType> infer_statistic(const Operation& operation) {
  return {{kept_shape(operation), operation.operands[0].dtype}};
}

std::vector<TensorType> infer_two_statistics(const Operation& operation) {
  const TensorType type{kept_shape(operation), operation.operands[0].dtype};
  return {type, type};
}

ShardingRule statistic_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(shape);
  for (const std::size_t axis : normal_axes(operation, operation.list("axis"), shape.size())) {
    builder.set_kind(x[axis], FactorKind::kReduction);
  }
  add_broadcast_operands(builder, operation, x);
  for (const TensorType& result : operation.results) builder.result(broadcast_walk(x, shape, result.shape));
  return builder.build();
}

std::vector<TensorType> infer_exp_and_sum(const Operation& operation) {
  return {operation.operands[0], {kept_shape(operation), operation.operands[0].dtype}};
}

std::vector<TensorType> infer_like_first(const Operation& operation) { return {operation.operands[0]}; }

std::vector<TensorType> infer_norm_grad_apply(const Operation& operation) {
  std::vector<TensorType> results = {operation.operands[1]};
  while (results.size() < operation.type->result_names.size()) results.push_back(operation.operands[2]);
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

void exp_sum_kernel(const KernelCall& call) {
  add_terms<2>(call, 0, [&](const auto& at) {
    const auto value = reader(call, at);
    return std::exp(value(0) - value(1));
  });
}

void exp_and_sum_kernel(const KernelCall& call) {
  set_values<2>(call, [&](const auto& at) {
    const auto value = reader(call, at);
    return std::exp(value(0) - value(1));
  });
  double* e = call.results[0].data;
  add_terms<1>(call, 1, [&](const auto& at) { return e[at[0]]; });
}

void product_sum_kernel(const KernelCall& call) {
  add_terms<2>(call, 0, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) * value(1);
  });
}

/// y * (dy - sum(dy * y)).
void softmax_grad_apply_kernel(const KernelCall& call) {
  set_values<3>(call, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(1) * (value(0) - value(2));
  });
}

void log_softmax_apply_kernel(const KernelCall& call) {
  set_values<3>(call, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) - value(1) - std::log(value(2));
  });
}

/// dy - exp(y) * sum(dy).
void log_softmax_grad_apply_kernel(const KernelCall& call) {
  set_values<3>(call, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) - std::exp(value(1)) * value(2);
  });
}

void centred_square_mean_kernel(const KernelCall& call) {
  add_terms<2>(call, 0, [&](const auto& at) {
    const auto value = reader(call, at);
    return (value(0) - value(1)) * (value(0) - value(1));
  });
  divide_by_count(call, 0);
}

void square_mean_kernel(const KernelCall& call) {
  add_terms<1>(call, 0, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) * value(0);
  });
  divide_by_count(call, 0);
}

/// (x, gamma, beta, mean, variance).
void layer_norm_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<5>(call, [&](const auto& at) {
    const auto value = reader(call, at);
    return (value(0) - value(3)) / std::sqrt(value(4) + epsilon) * value(1) + value(2);
  });
}

/// (dy, x, gamma, mean, variance) -> the means of dy * gamma and of dy * gamma * xhat, xhat being the normalised x.
void layer_norm_grad_means_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  add_terms<3>(call, 0, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) * value(2);
  });
  add_terms<5>(call, 1, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) * value(2) * (value(1) - value(3)) / std::sqrt(value(4) + epsilon);
  });
  divide_by_count(call, 0);
  divide_by_count(call, 1);
}

/// (dy, x, gamma, mean, variance, m1, m2) -> dx = (dy * gamma - m1 - xhat * m2) / sigma, sum of dy * xhat, sum of dy.
void layer_norm_grad_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<7>(call, [&](const auto& at) {
    const auto value = reader(call, at);
    const double sigma = std::sqrt(value(4) + epsilon);
    return (value(0) * value(2) - value(5) - (value(1) - value(3)) / sigma * value(6)) / sigma;
  });
  add_terms<5>(call, 1, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) * (value(1) - value(3)) / std::sqrt(value(4) + epsilon);
  });
  add_terms<1>(call, 2, [&](const auto& at) { return call.operands[0].data[at[0]]; });
}

/// (x, gamma, mean of squares).
void rms_norm_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<3>(call, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) / std::sqrt(value(2) + epsilon) * value(1);
  });
}

/// (dy, x, gamma) -> the mean of dy * gamma * x.
void rms_norm_grad_mean_kernel(const KernelCall& call) {
  add_terms<3>(call, 0, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) * value(1) * value(2);
  });
  divide_by_count(call, 0);
}

/// (dy, x, gamma, mean of squares, m) -> dx = (dy * gamma - x * m / rms^2) / rms, sum of dy * x / rms.
void rms_norm_grad_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<5>(call, [&](const auto& at) {
    const auto value = reader(call, at);
    const double square = value(3) + epsilon;
    return (value(0) * value(2) - value(1) * value(4) / square) / std::sqrt(square);
  });
  add_terms<4>(call, 1, [&](const auto& at) {
    const auto value = reader(call, at);
    return value(0) * value(1) / std::sqrt(value(3) + epsilon);
  });
}

/// Of LayerNorm and RmsNorm: by the operator "<Name>Grad" of (dy, x, gamma).
Gradients norm_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const std::vector<TensorId> all =
      builder.add(request.operation.type->name + "Grad", request.operation.attributes,
                  {*request.result_gradients[0], request.operands[0], request.operands[1]});
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (request.needed[i]) gradients[i] = all[i];
  }
  return gradients;
}

}  // namespace shardplan
