#include "operators/families/rotary.h"

#include <fmt/format.h>

#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

std::vector<TensorType> infer_rotary(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  if (x.empty() || x.back() % 2 != 0) {
    operand_error(operation, fmt::format("the last dimension of {} must be even", to_string(x)));
  }
  for (std::size_t i = 1; i < 3; ++i) {
    const Shape& table = operation.operands[i].shape;
    if (table.empty() || table.back() != x.back() || table.size() > x.size() ||
        broadcast_shapes(operation, x, table) != x) {
      operand_error(operation, fmt::format("{} is {}; expected the last dimensions of {}",
                                           operation.type->signature.operands[i], to_string(table), to_string(x)));
    }
  }
  return {operation.operands[0]};
}

ShardingRule rotary_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  Shape outside = shape;
  outside.back() = 1;  // named below
  RuleBuilder builder;
  TensorWalk x = builder.add_positions(outside);
  const DimensionWalk half = builder.add("half", 2, FactorKind::kNeedReplication);
  x.back() = product(half, builder.add(position_name(shape.size() - 1), shape.back() / 2));
  for (const TensorType& operand : operation.operands) builder.operand(broadcast_walk(x, shape, operand.shape));
  builder.result(x);
  return builder.build();
}

/// Forward: (x1 c1 - x2 s1, x2 c2 + x1 s2). Its transpose: (u1 c1 + u2 s2, u2 c2 - u1 s1).
void rotate(const KernelCall& call, bool is_transposed) {
  Shape extents = call.operands[0].shape;
  const std::int64_t half = extents.back() / 2;
  std::array<Shape, 3> strides;
  for (std::size_t i = 0; i < 3; ++i) strides[i] = broadcast_strides(call.operands[i].shape, extents);
  extents.back() = half;
  double* result = call.results[0].data;
  for_each_point<3>(extents, strides, [&](const std::array<std::int64_t, 3>& at) {
    const double* x = call.operands[0].data + at[0];
    const double* c = call.operands[1].data + at[1];
    const double* s = call.operands[2].data + at[2];
    result[at[0]] = x[0] * c[0] + (is_transposed ? x[half] * s[half] : -x[half] * s[0]);
    result[at[0] + half] = x[half] * c[half] + (is_transposed ? -x[0] * s[0] : x[0] * s[half]);
  });
}

void rotary_kernel(const KernelCall& call) { rotate(call, false); }
void rotary_grad_kernel(const KernelCall& call) { rotate(call, true); }

Gradients rotary_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  if (request.needed[0]) {
    gradients[0] = add_one(builder, "RotaryEmbeddingGrad", {dy, request.operands[1], request.operands[2]});
  }
  const auto& operands = request.operation.operands;
  if (request.needed[1]) {
    gradients[1] = sum_to(builder, add_one(builder, "Mul", {dy, request.operands[0]}), operands[1].shape);
  }
  if (request.needed[2]) {
    // With cos = 0 and sin = 1 the operator is the rotation alone.
    const TensorId zeros = broadcast_to(builder, builder.constant(0), operands[1].shape);
    const TensorId ones = broadcast_to(builder, builder.constant(1), operands[2].shape);
    const TensorId rotated = add_one(builder, "RotaryEmbedding", {request.operands[0], zeros, ones});
    gradients[2] = sum_to(builder, add_one(builder, "Mul", {dy, rotated}), operands[2].shape);
  }
  return gradients;
}

}  // namespace

std::vector<OperatorType> rotary_operators() {
  return {
      {.name = "RotaryEmbedding",
       .signature = "x, cos, sin -> y",
       .infer = infer_rotary,
       .rule_text = "... s (half d), s (half d), s (half d) -> ... s (half d); half: whole",
       .rule = rotary_rule,
       .linear = {{"x"}, {"cos", "sin"}},
       .kernel = rotary_kernel,
       .gradient = rotary_gradient,
       .flops_per_point = 3},
      {.name = "RotaryEmbeddingGrad",
       .signature = "dy, cos, sin -> dx",
       .infer = infer_rotary,
       .rule_text = "... s (half d), s (half d), s (half d) -> ... s (half d); half: whole",
       .rule = rotary_rule,
       .linear = {{"dy"}, {"cos", "sin"}},
       .kernel = rotary_grad_kernel,
       .flops_per_point = 3,
       .is_internal = true},
  };
}

}  // namespace shardplan
