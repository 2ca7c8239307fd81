#include "operators/families/reduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

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

}  // namespace

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
  if (reduction == Reduction::kSum) builder.linear({0});
  return builder.build();
}

void reduce_sum_kernel(const KernelCall& call) {
  reduce(call, 0, [](double a, double b) { return a + b; });
}

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

std::vector<TensorType> infer_cum_sum(const Operation& operation) {
  (void)normal_axis(operation, operation.integer("axis"), operation.operands[0].shape.size());
  return {operation.operands[0]};
}

ShardingRule cum_sum_rule(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(x);
  builder.set_kind(walk[normal_axis(operation, operation.integer("axis"), x.size())], FactorKind::kNeedReplication);
  builder.operand(walk);
  builder.result(walk);
  builder.linear({0});
  return builder.build();
}

void cum_sum_kernel(const KernelCall& call) {
  const Shape& x = call.operands[0].shape;
  const AroundAxis around(x, normal_axis(call.operation, call.operation.integer("axis"), x.size()));
  const bool exclusive = call.operation.flag("exclusive");
  const bool reverse = call.operation.flag("reverse");
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t i = 0; i < around.inner; ++i) {
      double sum = 0;
      for (std::int64_t step = 0; step < around.size; ++step) {
        const std::int64_t position = reverse ? around.size - 1 - step : step;
        const std::int64_t at = (o * around.size + position) * around.inner + i;
        const double value = call.operands[0].data[at];
        call.results[0].data[at] = exclusive ? sum : sum + value;
        sum += value;
      }
    }
  }
}

std::vector<TensorType> infer_top_k(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const std::int64_t k = operation.integer("k");
  if (x.shape.empty() || k < 1 || k > x.shape.back()) {
    operand_error(operation, fmt::format("k is {}; expected 1 to the last dimension of {}", k, to_string(x.shape)));
  }
  Shape shape = x.shape;
  shape.back() = k;
  return {{shape, x.dtype}, {shape, DataType::kI32}};
}

ShardingRule top_k_rule(const Operation& operation) {
  Shape outside = operation.operands[0].shape;
  outside.back() = 1;  // whole
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(outside);
  builder.operand(walk);
  builder.result(walk);
  builder.result(walk);
  return builder.build();
}

void top_k_kernel(const KernelCall& call) {
  const std::int64_t size = call.operands[0].shape.back();
  const std::int64_t k = call.results[0].shape.back();
  const std::int64_t rows = num_elements(call.results[0].shape) / k;
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  for (std::int64_t row = 0; row < rows; ++row) {
    const double* x = call.operands[0].data + row * size;
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return x[a] > x[b]; });
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t from = order[static_cast<std::size_t>(i)];
      call.results[0].data[row * k + i] = x[from];
      call.results[1].data[row * k + i] = static_cast<double>(from);
    }
  }
}

std::vector<TensorType> infer_top_k_grad(const Operation& operation) {
  Shape shape = operation.operands[0].shape;
  shape.back() = operation.integer("size");
  return {{std::move(shape), operation.operands[0].dtype}};
}

ShardingRule top_k_grad_rule(const Operation& operation) {
  Shape outside = operation.operands[0].shape;
  outside.back() = 1;  // whole
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(outside);
  builder.operand(walk);
  builder.operand(walk);
  builder.result(walk);
  builder.linear({0});
  return builder.build();
}

void top_k_grad_kernel(const KernelCall& call) {
  const std::int64_t k = call.operands[0].shape.back();
  const std::int64_t size = call.results[0].shape.back();
  const std::int64_t rows = num_elements(call.operands[0].shape) / k;
  for (std::int64_t i = 0; i < rows * k; ++i) {
    const double position = call.operands[1].data[i];
    if (!(position >= 0 && position < static_cast<double>(size))) continue;
    call.results[0].data[(i / k) * size + static_cast<std::int64_t>(position)] += call.operands[0].data[i];
  }
}

Gradients reduce_sum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  const TensorId dy = with_kept_dims(builder, request.operation, *request.result_gradients[0]);
  gradients[0] = broadcast_to(builder, dy, request.operation.operands[0].shape);
  return gradients;
}

Gradients reduce_mean_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  const std::int64_t count =
      num_elements(request.operation.operands[0].shape) / num_elements(request.operation.results[0].shape);
  const TensorId share =
      add_one(builder, "Mul", {*request.result_gradients[0], builder.constant(1.0 / static_cast<double>(count))});
  gradients[0] =
      broadcast_to(builder, with_kept_dims(builder, request.operation, share), request.operation.operands[0].shape);
  return gradients;
}

Gradients reduce_extreme_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  const TensorId extreme = with_kept_dims(builder, request.operation, request.results[0]);
  const TensorId dy = with_kept_dims(builder, request.operation, *request.result_gradients[0]);
  const std::string dtype(to_string(request.operation.operands[0].dtype));
  const TensorId taken =
      add_one(builder, "Cast", {add_one(builder, "Equal", {request.operands[0], extreme})}, {{"dtype", dtype}});
  const TensorId count =
      add_one(builder, "ReduceSum", {taken},
              {{"axis", attribute_axes(reduced_dimensions(request.operation))}, {"keep_dims", true}});
  gradients[0] = add_one(builder, "Mul", {taken, add_one(builder, "RealDiv", {dy, count})});
  return gradients;
}

Gradients cum_sum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  Attributes attributes = request.operation.attributes;
  attributes["reverse"] = !request.operation.flag("reverse");
  gradients[0] = add_one(builder, "CumSum", {*request.result_gradients[0]}, attributes);
  return gradients;
}

Gradients top_k_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0] || !request.needed[0]) return gradients;
  gradients[0] = add_one(builder, "TopKGrad", {*request.result_gradients[0], request.results[1]},
                         {{"size", request.operation.operands[0].shape.back()}});
  return gradients;
}

}  // namespace shardplan
