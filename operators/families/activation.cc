#include "operators/families/activation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"

namespace shardplan {
namespace {

double relu(double x) { return 0 < x ? x : 0; }
double relu_slope(double dy, double y) { return 0 < y ? dy : 0; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double sigmoid_slope(double dy, double y) { return dy * y * (1 - y); }

double silu(double x) { return x * sigmoid(x); }
double silu_slope(double dy, double x) { return dy * sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

double tangent(double x) { return std::tanh(x); }
double tangent_slope(double dy, double y) { return dy * (1 - y * y); }

constexpr double kTanhScale = 0.7978845608028654;  // sqrt(2 / pi)

void gelu_kernel(const KernelCall& call) {
  const bool by_tanh = call.operation.flag("approximate");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double x = call.operands[0].data[i];
    call.results[0].data[i] = by_tanh ? 0.5 * x * (1 + std::tanh(kTanhScale * (x + 0.044715 * x * x * x)))
                                      : 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  }
}

void gelu_slope(const KernelCall& call) {
  const bool by_tanh = call.operation.flag("approximate");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double dy = call.operands[0].data[i];
    const double x = call.operands[1].data[i];
    double slope = 0;
    if (by_tanh) {
      const double t = std::tanh(kTanhScale * (x + 0.044715 * x * x * x));
      slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kTanhScale * (1 + 3 * 0.044715 * x * x);
    } else {
      slope =
          0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    }
    call.results[0].data[i] = dy * slope;
  }
}

double hard_sigmoid(double x) { return std::clamp(x / 6 + 0.5, 0.0, 1.0); }
double hard_sigmoid_slope(double dy, double x) { return -3 < x && x < 3 ? dy / 6 : 0; }

double hard_swish(double x) { return x * hard_sigmoid(x); }
double hard_swish_slope(double dy, double x) { return dy * (hard_sigmoid(x) + x * hard_sigmoid_slope(1, x)); }

/// log(1 + e^x), without overflow.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double softplus_slope(double dy, double x) { return dy * sigmoid(x); }

double mish(double x) { return x * std::tanh(softplus(x)); }
double mish_slope(double dy, double x) {
  const double t = std::tanh(softplus(x));
  return dy * (t + x * (1 - t * t) * sigmoid(x));
}

/// y of x (of dy and x in slopes), and of one attribute.
template <double (*function)(double x, double attribute)>
void unary_by(const KernelCall& call, const char* attribute) {
  const double value = call.operation.number(attribute);
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) call.results[0].data[i] = function(call.operands[0].data[i], value);
}
template <double (*slope)(double x, double attribute)>
void slope_by(const KernelCall& call, const char* attribute) {
  const double value = call.operation.number(attribute);
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    call.results[0].data[i] = call.operands[0].data[i] * slope(call.operands[1].data[i], value);
  }
}

double leaky(double x, double alpha) { return 0 < x ? x : alpha * x; }
double leaky_slope(double x, double alpha) { return 0 < x ? 1 : alpha; }
void leaky_kernel(const KernelCall& call) { unary_by<leaky>(call, "alpha"); }
void leaky_slope_kernel(const KernelCall& call) { slope_by<leaky_slope>(call, "alpha"); }

double elu(double x, double alpha) { return 0 < x ? x : alpha * std::expm1(x); }
double elu_slope(double x, double alpha) { return 0 < x ? 1 : alpha * std::exp(x); }
void elu_kernel(const KernelCall& call) { unary_by<elu>(call, "alpha"); }
void elu_slope_kernel(const KernelCall& call) { slope_by<elu_slope>(call, "alpha"); }

// ---- PReLU: the slope below 0 is a parameter, of each channel (dimension 1) or of all

std::vector<TensorType> infer_prelu(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  const Shape& weight = operation.operands[1].shape;
  const bool is_per_channel = x.size() >= 2 && weight == Shape{x[1]};
  if (!is_per_channel && weight != Shape{1}) {
    operand_error(operation, fmt::format("weight is {}; expected [1]{} for the input {}", to_string(weight),
                                         x.size() >= 2 ? fmt::format(" or [{}]", x[1]) : "", to_string(x)));
  }
  return {{x, common_type(operation, 0)}};
}

DimensionWalk weight_walk(const TensorWalk& x, const Shape& weight) { return weight[0] == 1 ? whole() : x[1]; }

ShardingRule prelu_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  builder.operand(x);
  builder.operand({weight_walk(x, operation.operands[1].shape)});
  builder.result(x);
  return builder.build();
}

/// Calls body(offset in x, offset in weight).
template <class Body>
void for_each_weighted(const Shape& x, const Shape& weight, Body body) {
  const std::int64_t channels = weight[0];
  const std::int64_t inner = channels == 1 ? 1 : num_elements(x) / (x[0] * channels);
  const std::int64_t size = num_elements(x);
  for (std::int64_t at = 0; at < size; ++at) body(at, channels == 1 ? 0 : at / inner % channels);
}

void prelu_kernel(const KernelCall& call) {
  for_each_weighted(call.operands[0].shape, call.operands[1].shape, [&](std::int64_t at, std::int64_t channel) {
    call.results[0].data[at] = leaky(call.operands[0].data[at], call.operands[1].data[channel]);
  });
}

std::vector<TensorType> infer_prelu_grad(const Operation& operation) {
  return {operation.operands[1], operation.operands[2]};
}

/// (dy, x, weight) -> dx, and dweight as a sum over all dimensions but the channels.
ShardingRule prelu_grad_rule(const Operation& operation) {
  const Shape& weight = operation.operands[2].shape;
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[1].shape);
  const DimensionWalk channel = weight_walk(x, weight);
  for (const DimensionWalk& walk : x) {
    if (channel.factors.empty() || walk != channel) builder.set_kind(walk, FactorKind::kReduction);
  }
  builder.operand(x);
  builder.operand(x);
  builder.operand({channel});
  builder.result(x);
  builder.result({channel});
  return builder.build();
}

void prelu_grad_kernel(const KernelCall& call) {
  for_each_weighted(call.operands[1].shape, call.operands[2].shape, [&](std::int64_t at, std::int64_t channel) {
    const double dy = call.operands[0].data[at];
    const double x = call.operands[1].data[at];
    call.results[0].data[at] = dy * leaky_slope(x, call.operands[2].data[channel]);
    if (!(0 < x)) call.results[1].data[channel] += dy * x;
  });
}

Gradients prelu_gradient(GradientBuilder& builder, const GradientRequest& request) {
  if (!request.result_gradients[0] || !(request.needed[0] || request.needed[1])) return no_gradients(request);
  return needed_gradients(
      request, builder.add("PReLUGrad", {}, {*request.result_gradients[0], request.operands[0], request.operands[1]}));
}

AttributeSpec alpha(double value, std::string description) { return number("alpha", value, std::move(description)); }

}  // namespace

std::vector<OperatorType> activation_operators() {
  std::vector<OperatorType> table;
  add_function(table, {.name = "ReLU",
                       .kernel = unary<relu>,
                       .slope = binary<relu_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true});
  add_function(table, {.name = "GeLU",
                       .kernel = gelu_kernel,
                       .slope = gelu_slope,
                       .attributes = {flag("approximate", true, "the tanh form, as MindSpore; false: by erf")},
                       .flops = 8,
                       .slope_flops = 16});
  add_function(table, {.name = "SiLU", .kernel = unary<silu>, .slope = binary<silu_slope>});
  add_function(table, {.name = "Sigmoid",
                       .kernel = unary<sigmoid>,
                       .slope = binary<sigmoid_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true});
  add_function(table, {.name = "Tanh",
                       .kernel = unary<tangent>,
                       .slope = binary<tangent_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true});
  add_function(
      table,
      {.name = "HardSigmoid", .kernel = unary<hard_sigmoid>, .slope = binary<hard_sigmoid_slope>, .is_monotone = true});
  add_function(table, {.name = "HardSwish", .kernel = unary<hard_swish>, .slope = binary<hard_swish_slope>});
  add_function(table, {.name = "Softplus",
                       .kernel = unary<softplus>,
                       .slope = binary<softplus_slope>,
                       .is_monotone = true,
                       .flops = 4});
  add_function(table,
               {.name = "Mish", .kernel = unary<mish>, .slope = binary<mish_slope>, .flops = 8, .slope_flops = 12});
  add_function(table, {.name = "LeakyReLU",
                       .kernel = leaky_kernel,
                       .slope = leaky_slope_kernel,
                       .attributes = {alpha(0.2, "slope below 0")}});
  add_function(table, {.name = "ELU",
                       .kernel = elu_kernel,
                       .slope = elu_slope_kernel,
                       .attributes = {alpha(1, "alpha (e^x - 1) below 0")},
                       .flops = 3,
                       .slope_flops = 3});
  table.push_back({.name = "PReLU",
                   .signature = "x, weight -> y",
                   .infer = infer_prelu,
                   .rule_text = "n c ..., c -> n c ...",
                   .rule = prelu_rule,
                   .kernel = prelu_kernel,
                   .gradient = prelu_gradient,
                   .notes = "strategy  ((n, c, ..), (c)); a weight of one number is not cut"});
  table.push_back({.name = "PReLUGrad",
                   .signature = "dy, x, weight -> dx, dweight",
                   .infer = infer_prelu_grad,
                   .rule_text = "n c ..., n c ..., c -> n c ..., c; n, ...: sum",
                   .rule = prelu_grad_rule,
                   .kernel = prelu_grad_kernel,
                   .flops_per_point = 3,
                   .is_internal = true});
  return table;
}

}  // namespace shardplan
