#include "operators/families/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"
#include "operators/building/rule_builder.h"
#include "operators/building/statistics.h"
#include "operators/building/strided_loop.h"

// One loop (`reduce`) adds every element of the operand to its result by strides that are 0 along reduced dimensions;
// the operators differ in what they fold. A mean divides by the global count, so that the means of pieces add up to the
// mean and a cut dimension makes a partial sum.

namespace shardplan {
namespace {

/// True for each dimension that is reduced.
std::vector<bool> reduced_dimensions(const Operation& operation) {
  const std::size_t rank = operation.operands[0].shape.size();
  std::vector<bool> reduced(rank, false);
  for (const std::size_t axis : normal_axes(operation, operation.list("axis"), rank)) reduced[axis] = true;
  return reduced;
}

/// Strides of the local result along the operand's dimensions, 0 along reduced ones.
Shape result_strides(const KernelCall& call) {
  const std::vector<bool> reduced = reduced_dimensions(call.operation);
  const Shape& x = call.operands[0].shape;
  Shape strides(x.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t d = x.size(); d-- > 0;) {
    if (reduced[d]) continue;
    strides[d] = stride;
    stride *= x[d];
  }
  return strides;
}

/// Folds every operand element into its result, which begins as `start`.
template <class Fold>
void reduce(const KernelCall& call, double start, Fold fold) {
  double* result = call.results[0].data;
  std::fill_n(result, num_elements(call.results[0].shape), start);
  const double* x = call.operands[0].data;
  for_each_point<1>(call.operands[0].shape, {result_strides(call)},
                    [&](const std::array<std::int64_t, 1>& at) { result[at[0]] = fold(result[at[0]], *x++); });
}

std::vector<std::int64_t> attribute_axes(const std::vector<bool>& reduced) {
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) axes.push_back(static_cast<std::int64_t>(d));
  }
  return axes;
}

/// A reduced tensor with its reduced dimensions put back as 1.
TensorId with_kept_dims(GradientBuilder& builder, const Operation& operation, TensorId reduced_tensor) {
  Shape shape = operation.operands[0].shape;
  const std::vector<bool> reduced = reduced_dimensions(operation);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (reduced[d]) shape[d] = 1;
  }
  return reshape_to(builder, reduced_tensor, shape);
}

std::vector<TensorType> infer_reduce(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const std::vector<bool> reduced = reduced_dimensions(operation);
  Shape shape;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (!reduced[d]) shape.push_back(x.shape[d]);
    if (reduced[d] && operation.flag("keep_dims")) shape.push_back(1);
  }
  return {{std::move(shape), x.dtype}};
}

ShardingRule reduce_rule(const Operation& operation) {
  const std::string& name = operation.type->name;
  const Reduction reduction = name == "ReduceMax"   ? Reduction::kMax
                              : name == "ReduceMin" ? Reduction::kMin
                                                    : Reduction::kSum;
  const std::vector<bool> reduced = reduced_dimensions(operation);
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  TensorWalk y;
  for (std::size_t d = 0; d < x.size(); ++d) {
    if (!reduced[d]) y.push_back(x[d]);
    if (reduced[d]) builder.set_kind(x[d], FactorKind::kReduction, reduction);
    if (reduced[d] && operation.flag("keep_dims")) y.push_back(whole());
  }
  builder.operand(x);
  builder.result(std::move(y));
  return builder.build();
}

void reduce_sum_kernel(const KernelCall& call) {
  reduce(call, 0, [](double a, double b) { return a + b; });
}

/// Divides by the global count: means of parts add up to the mean.
void reduce_mean_kernel(const KernelCall& call) {
  reduce_sum_kernel(call);
  const std::vector<bool> reduced = reduced_dimensions(call.operation);
  double count = 1;
  for (std::size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) count *= static_cast<double>(call.operation.operands[0].shape[d]);
  }
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) call.results[0].data[i] /= count;
}

void reduce_max_kernel(const KernelCall& call) {
  reduce(call, -std::numeric_limits<double>::infinity(), [](double a, double b) { return std::max(a, b); });
}

void reduce_min_kernel(const KernelCall& call) {
  reduce(call, std::numeric_limits<double>::infinity(), [](double a, double b) { return std::min(a, b); });
}

/// The sum of all squares: what clipping by the global norm adds up.
std::vector<TensorType> infer_square_sum(const Operation& operation) { return {{{}, operation.operands[0].dtype}}; }

ShardingRule square_sum_rule(const Operation& operation) {
  RuleBuilder builder;
  builder.operand(builder.add_positions(operation.operands[0].shape, FactorKind::kReduction));
  builder.result({});
  return builder.build();
}

void square_sum_kernel(const KernelCall& call) {
  const std::int64_t size = num_elements(call.operands[0].shape);
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += call.operands[0].data[i] * call.operands[0].data[i];
  call.results[0].data[0] = sum;
}

Gradients reduce_sum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    return broadcast_to(builder, with_kept_dims(builder, request.operation, dy), request.operation.operands[0].shape);
  });
}

Gradients reduce_mean_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    const Shape& shape = request.operation.operands[0].shape;
    const std::int64_t count = num_elements(shape) / num_elements(request.operation.results[0].shape);
    const TensorId share = add_one(builder, "Mul", {dy, builder.constant(1.0 / static_cast<double>(count))});
    return broadcast_to(builder, with_kept_dims(builder, request.operation, share), shape);
  });
}

// ---- the gradient of ReduceMax and ReduceMin
//
// One operator that finds the extremes of its own operand again. Compared with the forward result, an operand that was
// completed by another collective differs from it in its last bits, and then nothing would be extreme.

ShardingRule extreme_grad_rule(const Operation& operation) {
  RuleBuilder builder;
  const Shape& shape = operation.operands[1].shape;
  const TensorWalk x = builder.add_positions(shape);
  for (const std::size_t axis : normal_axes(operation, operation.list("axis"), x.size())) {
    builder.set_kind(x[axis], FactorKind::kNormalised);
  }
  builder.operand(broadcast_walk(x, shape, operation.operands[0].shape));
  builder.operand(x);
  builder.result(x);
  return builder.build();
}

Phases extreme_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  const Attributes axis = {{"axis", operation.list("axis")}};
  Attributes kept = axis;
  kept["keep_dims"] = true;
  const bool is_maximum = operation.type->name == "ReduceMaxGrad";
  return make_phases(operation, {{is_maximum ? "extreme = ReduceMax(x)" : "extreme = ReduceMin(x)", kept},
                                 {"count = ExtremeCount(x, extreme)", axis},
                                 {"dx = ExtremeGradApply(x, extreme, count, dy)"}});
}

void extreme_count_kernel(const KernelCall& call) {
  add_terms<2>(call, 0, [](const auto& value) { return value(0) == value(1) ? 1.0 : 0.0; });
}

void extreme_grad_apply_kernel(const KernelCall& call) {
  set_values<4>(call, [](const auto& value) { return value(0) == value(1) ? value(3) / value(2) : 0.0; });
}

/// ReduceMax and ReduceMin: all elements that are extreme get equal shares.
Gradients reduce_extreme_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    const TensorId kept = with_kept_dims(builder, request.operation, dy);
    return add_one(builder, request.operation.type->name + "Grad", {kept, request.operands[0]},
                   {{"axis", attribute_axes(reduced_dimensions(request.operation))}});
  });
}

/// The gradient of a maximum or minimum with regard to x; dy has size 1 in the reduced dimensions.
OperatorType extreme_grad(std::string name) {
  return {.name = std::move(name),
          .signature = "dy, x -> dx",
          .attributes = {list("axis", std::nullopt, "dimensions that were reduced")},
          .infer = [](const Operation& operation) { return std::vector<TensorType>{operation.operands[1]}; },
          .rule_text = "... 1, ... k -> ... k; k: normalised",
          .rule = extreme_grad_rule,
          .phases = extreme_grad_phases,
          .flops_per_point = 4,
          .is_internal = true};
}

/// A reduction over `axis`.
OperatorType reduction(std::string name, std::string rule_text, OperandGroups linear, Kernel kernel,
                       Gradient gradient) {
  return {.name = std::move(name),
          .signature = "x -> y",
          .attributes = {list("axis", empty_list(), "dimensions that are reduced; all if empty"),
                         flag("keep_dims", false, "keep them as size 1")},
          .infer = infer_reduce,
          .rule_text = std::move(rule_text),
          .rule = reduce_rule,
          .linear = std::move(linear),
          .kernel = kernel,
          .gradient = gradient};
}

}  // namespace

std::vector<OperatorType> reduction_operators() {
  return {
      reduction("ReduceSum", "... k -> ...; k: sum", {{"x"}}, reduce_sum_kernel, reduce_sum_gradient),
      reduction("ReduceMean", "... k -> ...; k: sum, of shares of the global mean", {{"x"}}, reduce_mean_kernel,
                reduce_mean_gradient),
      reduction("ReduceMax", "... k -> ...; k: max", {}, reduce_max_kernel, reduce_extreme_gradient),
      reduction("ReduceMin", "... k -> ...; k: min", {}, reduce_min_kernel, reduce_extreme_gradient),
      extreme_grad("ReduceMaxGrad"),
      extreme_grad("ReduceMinGrad"),
      statistic("ExtremeCount", "x, extreme -> count", "... k, ... 1 -> ... 1; k: sum", extreme_count_kernel),
      elementwise_phase("ExtremeGradApply", "x, extreme, count, dy -> dx", {}, "... k, ... 1, ... 1, ... 1 -> ... k",
                        extreme_grad_apply_kernel),
      {.name = "SquareSum",
       .signature = "x -> y",
       .infer = infer_square_sum,
       .rule_text = "... -> ; all: sum",
       .rule = square_sum_rule,
       .kernel = square_sum_kernel,
       .flops_per_point = 2},
  };
}

}  // namespace shardplan
