#include "operators/families/sorting.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"

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

}  // namespace

std::vector<OperatorType> sorting_operators() {
  return {
      {.name = "TopK",
       .signature = "x -> values, indices",
       .attributes = {integer("k", std::nullopt, "how many of the last dimension")},
       .infer = infer_top_k,
       .rule_text = "... n -> ... k, ... k; n, k: whole",
       .rule = top_k_rule,
       .kernel = top_k_kernel,
       .gradient = top_k_gradient},
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
