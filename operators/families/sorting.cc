#include "operators/families/sorting.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

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

Gradients top_k_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dvalues) {
    return add_one(builder, "TopKGrad", {dvalues, request.results[1]},
                   {{"size", request.operation.operands[0].shape.back()}});
  });
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

// ---- Sort and ArgMax: one dimension is whole

std::size_t ordered_axis(const Operation& operation) {
  return normal_axis(operation, operation.integer("axis"), operation.operands[0].shape.size());
}

std::vector<TensorType> infer_sort(const Operation& operation) {
  (void)ordered_axis(operation);
  return {operation.operands[0], {operation.operands[0].shape, DataType::kI32}};
}

std::vector<TensorType> infer_arg_max(const Operation& operation) {
  TensorType result = {operation.operands[0].shape, DataType::kI32};
  result.shape.erase(result.shape.begin() + static_cast<std::ptrdiff_t>(ordered_axis(operation)));
  return {result};
}

ShardingRule ordered_rule(const Operation& operation) {
  Shape outside = operation.operands[0].shape;
  outside[ordered_axis(operation)] = 1;  // whole
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(outside);
  builder.operand(walk);
  for (const TensorType& result : operation.results) {
    TensorWalk of_result = walk;
    if (result.shape.size() < walk.size()) {
      of_result.erase(of_result.begin() + static_cast<std::ptrdiff_t>(ordered_axis(operation)));
    }
    builder.result(std::move(of_result));
  }
  return builder.build();
}

/// Calls body(offset of the line's first element, stride, the line's number) for each line along the axis.
template <class Body>
void for_each_line(const KernelCall& call, Body body) {
  const AroundAxis around(call.operands[0].shape, ordered_axis(call.operation));
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t i = 0; i < around.inner; ++i) {
      body(o * around.size * around.inner + i, around.inner, o * around.inner + i);
    }
  }
}

/// Equal values keep their order.
void sort_kernel(const KernelCall& call) {
  const bool is_descending = call.operation.flag("descending");
  std::vector<std::int64_t> order(static_cast<std::size_t>(call.operands[0].shape[ordered_axis(call.operation)]));
  for_each_line(call, [&](std::int64_t first, std::int64_t stride, std::int64_t) {
    const auto value = [&](std::int64_t i) { return call.operands[0].data[first + i * stride]; };
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
      return is_descending ? value(a) > value(b) : value(a) < value(b);
    });
    std::int64_t at = first;
    for (const std::int64_t from : order) {
      call.results[0].data[at] = value(from);
      call.results[1].data[at] = static_cast<double>(from);
      at += stride;
    }
  });
}

/// The first of equal ones.
void arg_max_kernel(const KernelCall& call) {
  const std::int64_t size = call.operands[0].shape[ordered_axis(call.operation)];
  for_each_line(call, [&](std::int64_t first, std::int64_t stride, std::int64_t line) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < size; ++i) {
      if (call.operands[0].data[first + i * stride] > call.operands[0].data[first + best * stride]) best = i;
    }
    call.results[0].data[line] = static_cast<double>(best);
  });
}

Gradients sort_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dvalues) {
    const std::size_t axis = ordered_axis(request.operation);
    return add_one(builder, "GatherElementsGrad", {dvalues, request.results[1]},
                   {{"dim", static_cast<std::int64_t>(axis)}, {"size", request.operation.operands[0].shape[axis]}});
  });
}

}  // namespace

std::vector<OperatorType> sorting_operators() {
  return {
      {.name = "Sort",
       .signature = "x -> values, indices",
       .attributes = {integer("axis", -1, "along which values are ordered"),
                      flag("descending", false, "largest first")},
       .infer = infer_sort,
       .rule_text = "... k -> ... k, ... k; k: whole",
       .rule = ordered_rule,
       .kernel = sort_kernel,
       .gradient = sort_gradient,
       .compares_elements = true},
      {.name = "ArgMax",
       .signature = "x -> index",
       .attributes = {integer("axis", -1, "along which the largest is found")},
       .infer = infer_arg_max,
       .rule_text = "... k -> ...; k: whole",
       .rule = ordered_rule,
       .kernel = arg_max_kernel,
       .compares_elements = true},
      {.name = "TopK",
       .signature = "x -> values, indices",
       .attributes = {integer("k", std::nullopt, "how many of the last dimension")},
       .infer = infer_top_k,
       .rule_text = "... n -> ... k, ... k; n, k: whole",
       .rule = top_k_rule,
       .kernel = top_k_kernel,
       .gradient = top_k_gradient,
       .compares_elements = true},
      {.name = "TopKGrad",
       .signature = "dvalues, indices -> dx",
       .attributes = {integer("size", std::nullopt, "of the last dimension of x")},
       .infer = infer_top_k_grad,
       .rule_text = "... k, ... k -> ... n; n, k: whole",
       .rule = top_k_grad_rule,
       .linear = {{"dvalues"}},
       .kernel = top_k_grad_kernel,
       .is_internal = true},
  };
}

}  // namespace shardplan
