#include "operators/families/rearranging.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/integer.h"
#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

std::vector<TensorType> infer_transpose(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const std::vector<std::int64_t>& perm = operation.list("perm");
  const bool is_permutation =
      perm.size() == x.shape.size() && normal_axes(operation, perm, x.shape.size()).size() == x.shape.size();
  if (!is_permutation) {
    operand_error(operation,
                  fmt::format("perm {} does not order the dimensions of {}", to_string(perm), to_string(x.shape)));
  }
  Shape shape;
  for (const std::int64_t from : perm) shape.push_back(x.shape[normal_axis(operation, from, x.shape.size())]);
  return {{std::move(shape), x.dtype}};
}

ShardingRule transpose_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  TensorWalk y;
  for (const std::int64_t from : operation.list("perm")) y.push_back(x[normal_axis(operation, from, x.size())]);
  builder.operand(x);
  builder.result(std::move(y));
  return builder.build();
}

void transpose_kernel(const KernelCall& call) {
  const Shape own = row_major_strides(call.operands[0].shape);
  Shape strides;
  for (const std::int64_t from : call.operation.list("perm")) {
    strides.push_back(own[normal_axis(call.operation, from, own.size())]);
  }
  double* result = call.results[0].data;
  for_each_point<1>(call.results[0].shape, {strides},
                    [&](const std::array<std::int64_t, 1>& at) { *result++ = call.operands[0].data[at[0]]; });
}

Gradients transpose_gradient(GradientBuilder& builder, const GradientRequest& request) {
  const std::vector<std::int64_t>& perm = request.operation.list("perm");
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t d = 0; d < perm.size(); ++d) {
    inverse[normal_axis(request.operation, perm[d], perm.size())] = static_cast<std::int64_t>(d);
  }
  return gradient_of_first(request, [&](TensorId dy) {
    return add_one(builder, "Transpose", {dy}, {{"perm", inverse}});
  });
}

std::vector<TensorType> infer_tile(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const std::vector<std::int64_t>& multiples = operation.list("multiples");
  if (multiples.size() < x.shape.size()) {
    operand_error(operation, fmt::format("multiples {} are fewer than the dimensions of {}", to_string(multiples),
                                         to_string(x.shape)));
  }
  Shape shape = multiples;
  const std::size_t skipped = multiples.size() - x.shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 1) operand_error(operation, fmt::format("multiples {} must be at least 1", to_string(multiples)));
    if (d >= skipped) shape[d] = checked_size(operation, checked_multiply(shape[d], x.shape[d - skipped]));
  }
  return {{std::move(shape), x.dtype}};
}

ShardingRule tile_rule(const Operation& operation) {
  const std::vector<std::int64_t>& multiples = operation.list("multiples");
  const Shape& shape = operation.operands[0].shape;
  const std::size_t skipped = multiples.size() - shape.size();
  RuleBuilder builder;
  TensorWalk x;
  TensorWalk y;
  for (std::size_t d = 0; d < multiples.size(); ++d) {
    const DimensionWalk copies = multiples[d] == 1 ? whole() : builder.add("copy" + position_name(d), multiples[d]);
    DimensionWalk own = whole();
    if (d >= skipped) {
      if (shape[d - skipped] > 1) own = builder.add(position_name(d), shape[d - skipped]);
      x.push_back(own);
    }
    y.push_back(product(copies, own));
  }
  builder.operand(std::move(x));
  builder.result(std::move(y));
  return builder.build();
}

void tile_kernel(const KernelCall& call) {
  // Every dimension as (copy, own): the local copies are the result's extent over the operand's.
  Shape extents;
  Shape strides;
  const Shape& result = call.results[0].shape;
  const Shape& x = call.operands[0].shape;
  const Shape own = row_major_strides(x);
  const std::size_t skipped = result.size() - x.size();
  for (std::size_t d = 0; d < result.size(); ++d) {
    const std::int64_t size = d < skipped ? 1 : x[d - skipped];
    extents.push_back(result[d] / size);
    extents.push_back(size);
    strides.push_back(0);
    strides.push_back(d < skipped ? 0 : own[d - skipped]);
  }
  double* y = call.results[0].data;
  for_each_point<1>(extents, {strides},
                    [&](const std::array<std::int64_t, 1>& at) { *y++ = call.operands[0].data[at[0]]; });
}

/// Every dimension as (copy, own); the copies are added up.
Gradients tile_gradient(GradientBuilder& builder, const GradientRequest& request) {
  const std::vector<std::int64_t>& multiples = request.operation.list("multiples");
  const Shape& shape = request.operation.operands[0].shape;
  const std::size_t skipped = multiples.size() - shape.size();
  Shape parts;
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < multiples.size(); ++d) {
    if (multiples[d] > 1) {
      axes.push_back(static_cast<std::int64_t>(parts.size()));
      parts.push_back(multiples[d]);
    }
    if (d >= skipped) parts.push_back(shape[d - skipped]);
  }
  return gradient_of_first(request, [&](TensorId dy) {
    TensorId sum = reshape_to(builder, dy, parts);
    if (!axes.empty()) sum = add_one(builder, "ReduceSum", {sum}, {{"axis", axes}});
    return reshape_to(builder, sum, shape);
  });
}

std::vector<TensorType> infer_broadcast_to(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const Shape& shape = operation.list("shape");
  if (shape.size() < x.shape.size() || broadcast_shapes(operation, x.shape, shape) != shape) {
    operand_error(operation, fmt::format("{} does not broadcast to {}", to_string(x.shape), to_string(shape)));
  }
  return {{shape, x.dtype}};
}

ShardingRule broadcast_to_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk result = builder.add_positions(operation.results[0].shape);
  builder.operand(broadcast_walk(result, operation.results[0].shape, operation.operands[0].shape));
  builder.result(result);
  return builder.build();
}

void broadcast_to_kernel(const KernelCall& call) {
  const Shape& extents = call.results[0].shape;
  double* result = call.results[0].data;
  for_each_point<1>(extents, {broadcast_strides(call.operands[0].shape, extents)},
                    [&](const std::array<std::int64_t, 1>& at) { *result++ = call.operands[0].data[at[0]]; });
}

Gradients broadcast_to_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request,
                           [&](TensorId dy) { return sum_to(builder, dy, request.operation.operands[0].shape); });
}

}  // namespace

std::vector<OperatorType> rearranging_operators() {
  return {
      {.name = "Transpose",
       .signature = "x -> y",
       .attributes = {list("perm", std::nullopt, "for each dimension of the result the one of x")},
       .infer = infer_transpose,
       .rule_text = "a b ... -> perm",
       .rule = transpose_rule,
       .linear = {{"x"}},
       .monotone = {{"x"}},
       .kernel = transpose_kernel,
       .gradient = transpose_gradient,
       .flops_per_point = 0,
       .moves_elements = true},
      {.name = "Tile",
       .signature = "x -> y",
       .attributes = {list("multiples", std::nullopt, "how often each dimension is repeated")},
       .infer = infer_tile,
       .rule_text = "a ... -> (copy a) ...",
       .rule = tile_rule,
       .linear = {{"x"}},
       .monotone = {{"x"}},
       .kernel = tile_kernel,
       .gradient = tile_gradient,
       .flops_per_point = 0,
       .moves_elements = true},
      {.name = "BroadcastTo",
       .signature = "x -> y",
       .attributes = {list("shape", std::nullopt, "of the result")},
       .infer = infer_broadcast_to,
       .rule_text = "1 b -> a b",
       .rule = broadcast_to_rule,
       .linear = {{"x"}},
       .monotone = {{"x"}},
       .kernel = broadcast_to_kernel,
       .gradient = broadcast_to_gradient,
       .flops_per_point = 0,
       .moves_elements = true},
  };
}

}  // namespace shardplan
