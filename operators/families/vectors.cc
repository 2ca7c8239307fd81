#include "operators/families/vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"
#include "operators/building/statistics.h"

namespace shardplan {
namespace {

// ---- L2Normalize

std::vector<TensorType> infer_normalise(const Operation& operation) {
  (void)normal_axes(operation, operation.list("axis"), operation.operands[0].shape.size());
  return {operation.operands[0]};
}

ShardingRule normalise_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  for (const std::size_t axis : normal_axes(operation, operation.list("axis"), x.size())) {
    builder.set_kind(x[axis], FactorKind::kNormalised);
  }
  add_broadcast_operands(builder, operation, x);
  builder.result(x);
  return builder.build();
}

Phases normalise_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation, {{"sum = L2SquareSum(x)", {{"axis", operation.list("axis")}}},
                                 {"y = L2NormalizeApply(x, sum)", {{"epsilon", operation.number("epsilon")}}}});
}

Phases normalise_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  const Attributes axis = {{"axis", operation.list("axis")}};
  return make_phases(operation,
                     {{"sum = L2SquareSum(x)", axis},
                      {"dot = L2GradDot(dy, x)", axis},
                      {"dx = L2NormalizeGradApply(dy, x, sum, dot)", {{"epsilon", operation.number("epsilon")}}}});
}

void squared_length_kernel(const KernelCall& call) {
  add_terms<1>(call, 0, [](const auto& value) { return value(0) * value(0); });
}

void dot_kernel(const KernelCall& call) {
  add_terms<2>(call, 0, [](const auto& value) { return value(0) * value(1); });
}

/// (x, sum).
void normalise_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<2>(call, [&](const auto& value) { return value(0) / std::sqrt(std::max(value(1), epsilon)); });
}

/// (dy, x, sum, dot) -> (dy - x dot / sum) / norm; the norm does not depend on x where the sum is below epsilon.
void normalise_grad_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  set_values<4>(call, [&](const auto& value) {
    const double through_norm = value(2) > epsilon ? value(1) * value(3) / value(2) : 0;
    return (value(0) - through_norm) / std::sqrt(std::max(value(2), epsilon));
  });
}

Gradients normalise_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    return add_one(builder, "L2NormalizeGrad", {dy, request.operands[0]}, request.operation.attributes);
  });
}

std::vector<AttributeSpec> normalise_attributes() {
  return {list("axis", std::nullopt, "the vectors' dimensions"), epsilon(1e-4)};
}

// ---- Cross

std::size_t vector_axis(const Operation& operation) {
  return normal_axis(operation, operation.integer("dim"), operation.operands[0].shape.size());
}

std::vector<TensorType> infer_cross(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  if (operation.operands[1] != x || x.shape[vector_axis(operation)] != 3) {
    operand_error(operation, fmt::format("x1 {} and x2 {}: expected two equal shapes with 3 positions in dimension dim",
                                         to_string(x.shape), to_string(operation.operands[1].shape)));
  }
  return {x};
}

ShardingRule cross_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  builder.set_kind(x[vector_axis(operation)], FactorKind::kNeedReplication);
  builder.operand(x);
  builder.operand(x);
  builder.result(x);
  return builder.build();
}

void cross_kernel(const KernelCall& call) {
  const AroundAxis around(call.operands[0].shape, vector_axis(call.operation));
  const double* a = call.operands[0].data;
  const double* b = call.operands[1].data;
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t i = 0; i < around.inner; ++i) {
      const auto at = [&](std::int64_t k) { return (o * 3 + k % 3) * around.inner + i; };
      for (std::int64_t k = 0; k < 3; ++k) {
        call.results[0].data[at(k)] = a[at(k + 1)] * b[at(k + 2)] - a[at(k + 2)] * b[at(k + 1)];
      }
    }
  }
}

/// dx1 = x2 x dy, dx2 = dy x x1.
Gradients cross_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const Attributes& dim = request.operation.attributes;
  if (request.needed[0]) gradients[0] = add_one(builder, "Cross", {request.operands[1], dy}, dim);
  if (request.needed[1]) gradients[1] = add_one(builder, "Cross", {dy, request.operands[0]}, dim);
  return gradients;
}

// ---- Outer

std::vector<TensorType> infer_outer(const Operation& operation) {
  for (const TensorType& operand : operation.operands) {
    if (operand.shape.size() == 1) continue;
    operand_error(operation, fmt::format("an operand is {}; expected one dimension", to_string(operand.shape)));
  }
  return {{{operation.operands[0].shape[0], operation.operands[1].shape[0]}, common_type(operation, 0)}};
}

void outer_kernel(const KernelCall& call) {
  double* result = call.results[0].data;
  for (std::int64_t m = 0; m < call.operands[0].shape[0]; ++m) {
    for (std::int64_t n = 0; n < call.operands[1].shape[0]; ++n) {
      *result++ = call.operands[0].data[m] * call.operands[1].data[n];
    }
  }
}

Gradients outer_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const auto contracted = [&](const char* equation, std::size_t other) {
    return add_one(builder, "Einsum", {dy, request.operands[other]}, {{"equation", std::string(equation)}});
  };
  if (request.needed[0]) gradients[0] = contracted("mn,n->m", 1);
  if (request.needed[1]) gradients[1] = contracted("mn,m->n", 0);
  return gradients;
}

}  // namespace

std::vector<OperatorType> vector_operators() {
  return {
      {.name = "L2Normalize",
       .signature = "x -> y",
       .attributes = normalise_attributes(),
       .infer = infer_normalise,
       .rule_text = "... k -> ... k; k: normalised",
       .rule = normalise_rule,
       .phases = normalise_phases,
       .gradient = normalise_gradient,
       .flops_per_point = 4},
      {.name = "L2NormalizeGrad",
       .signature = "dy, x -> dx",
       .attributes = normalise_attributes(),
       .infer = infer_normalise,
       .rule_text = "... k, ... k -> ... k; k: normalised",
       .rule = normalise_rule,
       .phases = normalise_grad_phases,
       .flops_per_point = 8,
       .is_internal = true},
      statistic("L2SquareSum", "x -> sum", "... k -> ... 1; k: sum", squared_length_kernel),
      statistic("L2GradDot", "dy, x -> dot", "... k, ... k -> ... 1; k: sum", dot_kernel),
      elementwise_phase("L2NormalizeApply", "x, sum -> y", {epsilon(1e-4)}, "... k, ... 1 -> ... k", normalise_kernel),
      elementwise_phase("L2NormalizeGradApply", "dy, x, sum, dot -> dx", {epsilon(1e-4)},
                        "... k, ... k, ... 1, ... 1 -> ... k", normalise_grad_kernel),
      {.name = "Cross",
       .signature = "x1, x2 -> y",
       .attributes = {integer("dim", -1, "of the vectors' three numbers")},
       .infer = infer_cross,
       .rule_text = "... k, ... k -> ... k; k: whole",
       .rule = cross_rule,
       .linear = {{"x1"}, {"x2"}},
       .kernel = cross_kernel,
       .gradient = cross_gradient,
       .flops_per_point = 3},
      {.name = "Outer",
       .signature = "x1, x2 -> y",
       .infer = infer_outer,
       .rule_text = "m, n -> m n",
       .linear = {{"x1"}, {"x2"}},
       .kernel = outer_kernel,
       .gradient = outer_gradient},
  };
}

}  // namespace shardplan
