// The rules differ in which partial sums pass through: a sum of both operands passes through Add if both are partial
// together, through Mul if one is partial and the other is complete, and through no other function. Maxima pass through
// every increasing function.
#include "operators/families/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"

namespace shardplan {
namespace {

// ---- one operand

double exponential(double x) { return std::exp(x); }
double exponential_slope(double dy, double y) { return dy * y; }
double logarithm(double x) { return std::log(x); }
double logarithm_slope(double dy, double x) { return dy / x; }
double root(double x) { return std::sqrt(x); }
double root_slope(double dy, double y) { return dy / (2 * y); }
double inverse_root(double x) { return 1 / std::sqrt(x); }
double inverse_root_slope(double dy, double y) { return -0.5 * dy * y * y * y; }
double negative(double x) { return -x; }
double magnitude(double x) { return std::abs(x); }
double magnitude_slope(double dy, double x) { return 0 < x ? dy : x < 0 ? -dy : 0; }
double error_function(double x) { return std::erf(x); }
double error_function_slope(double dy, double x) { return dy * 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }
double square(double x) { return x * x; }
double square_slope(double dy, double x) { return 2 * dy * x; }

double sine(double x) { return std::sin(x); }
double sine_slope(double dy, double x) { return dy * std::cos(x); }
double cosine(double x) { return std::cos(x); }
double cosine_slope(double dy, double x) { return -dy * std::sin(x); }
double reciprocal(double x) { return 1 / x; }
double reciprocal_slope(double dy, double y) { return -dy * y * y; }
double logarithm_of_more(double x) { return std::log1p(x); }
double logarithm_of_more_slope(double dy, double x) { return dy / (1 + x); }
double exponential_less_one(double x) { return std::expm1(x); }
double exponential_less_one_slope(double dy, double y) { return dy * (y + 1); }

double sign(double x) { return 0 < x ? 1 : x < 0 ? -1 : 0; }
double rounded_down(double x) { return std::floor(x); }
double rounded_up(double x) { return std::ceil(x); }
double flat(double, double) { return 0; }  // the slope of steps

void clip_kernel(const KernelCall& call) {
  const double low = call.operation.number("clip_value_min");
  const double high = call.operation.number("clip_value_max");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    call.results[0].data[i] = std::min(high, std::max(low, call.operands[0].data[i]));
  }
}

void clip_slope(const KernelCall& call) {
  const double low = call.operation.number("clip_value_min");
  const double high = call.operation.number("clip_value_max");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double x = call.operands[1].data[i];
    call.results[0].data[i] = low <= x && x <= high ? call.operands[0].data[i] : 0;
  }
}

Gradients neg_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) { return add_one(builder, "Neg", {dy}); });
}

// ---- two operands

double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double product_of(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
double power(double a, double b) { return std::pow(a, b); }
double larger(double a, double b) { return a < b ? b : a; }
double smaller(double a, double b) { return a < b ? a : b; }

/// The remainder of a / b with the sign of a, as C's; and with the sign of b, as Python's.
double remainder_of(double a, double b) { return std::fmod(a, b); }
double floored_remainder(double a, double b) { return a - std::floor(a / b) * b; }

const Shape& shape_of(const GradientRequest& request, std::size_t operand) {
  return request.operation.operands[operand].shape;
}

/// Serves Add and AddN.
Gradients add_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (request.needed[i]) gradients[i] = sum_to(builder, *request.result_gradients[0], shape_of(request, i));
  }
  return gradients;
}

Gradients sub_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = add_gradient(builder, request);
  if (gradients[1]) gradients[1] = add_one(builder, "Neg", {*gradients[1]});
  return gradients;
}

Gradients mul_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!request.needed[i]) continue;
    const TensorId scaled = add_one(builder, "Mul", {*request.result_gradients[0], request.operands[1 - i]});
    gradients[i] = sum_to(builder, scaled, shape_of(request, i));
  }
  return gradients;
}

/// x / y: dy / y and -(dy / y) * (x / y).
Gradients div_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId scaled = add_one(builder, "RealDiv", {*request.result_gradients[0], request.operands[1]});
  if (request.needed[0]) gradients[0] = sum_to(builder, scaled, shape_of(request, 0));
  if (request.needed[1]) {
    const TensorId slope = add_one(builder, "Neg", {add_one(builder, "Mul", {scaled, request.results[0]})});
    gradients[1] = sum_to(builder, slope, shape_of(request, 1));
  }
  return gradients;
}

/// x^p: dy * p * x^(p-1) and dy * x^p * log(x).
Gradients pow_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const TensorId x = request.operands[0];
  const TensorId exponent = request.operands[1];
  if (request.needed[0]) {
    const TensorId lower = add_one(builder, "Pow", {x, add_one(builder, "Sub", {exponent, builder.constant(1)})});
    const TensorId slope = add_one(builder, "Mul", {lower, exponent});
    gradients[0] = sum_to(builder, add_one(builder, "Mul", {dy, slope}), shape_of(request, 0));
  }
  if (request.needed[1]) {
    const TensorId slope = add_one(builder, "Mul", {request.results[0], add_one(builder, "Log", {x})});
    gradients[1] = sum_to(builder, add_one(builder, "Mul", {dy, slope}), shape_of(request, 1));
  }
  return gradients;
}

/// a - whole(a / b) b, of Mod and FloorMod: dy and -dy * whole(a / b), where whole(a / b) = (a - y) / b.
Gradients remainder_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  if (request.needed[0]) gradients[0] = sum_to(builder, dy, shape_of(request, 0));
  if (request.needed[1]) {
    const TensorId whole = add_one(
        builder, "RealDiv", {add_one(builder, "Sub", {request.operands[0], request.results[0]}), request.operands[1]});
    const TensorId slope = add_one(builder, "Neg", {add_one(builder, "Mul", {dy, whole})});
    gradients[1] = sum_to(builder, slope, shape_of(request, 1));
  }
  return gradients;
}

/// Maximum and Minimum: the gradient goes to the operand that was taken, at a tie to the first.
Gradients maximum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dy = *request.result_gradients[0];
  const bool is_maximum = request.operation.type->name == "Maximum";
  const TensorId takes_first =
      add_one(builder, is_maximum ? "GreaterEqual" : "LessEqual", {request.operands[0], request.operands[1]});
  for (std::size_t i = 0; i < 2; ++i) {
    if (!request.needed[i]) continue;
    const TensorId zero = builder.constant(0);
    const TensorId taken = i == 0 ? add_one(builder, "Select", {takes_first, dy, zero})
                                  : add_one(builder, "Select", {takes_first, zero, dy});
    gradients[i] = sum_to(builder, taken, shape_of(request, i));
  }
  return gradients;
}

/// y = function(x1, x2), broadcast.
OperatorType binary_operator(std::string name, Kernel kernel, Gradient gradient, OperandGroups linear,
                             OperandGroups monotone) {
  return {.name = std::move(name),
          .signature = "x1, x2 -> y",
          .infer = infer_broadcast,
          .rule_text = "..., ... -> ...",
          .rule = elementwise_rule,
          .linear = std::move(linear),
          .monotone = std::move(monotone),
          .kernel = kernel,
          .gradient = gradient,
          .notes = "strategy  equal dimensions are sharded in the same way, broadcast ones are not sharded"};
}

// ---- several operands

std::vector<TensorType> infer_add_n(const Operation& operation) {
  for (const TensorType& operand : operation.operands) {
    if (operand != operation.operands[0]) {
      operand_error(
          operation,
          fmt::format("inputs are {} {} and {} {}; expected the same for all", to_string(operation.operands[0].dtype),
                      to_string(operation.operands[0].shape), to_string(operand.dtype), to_string(operand.shape)));
    }
  }
  return {operation.operands[0]};
}

void add_n_kernel(const KernelCall& call) {
  const std::int64_t size = num_elements(call.results[0].shape);
  for (const OperandView& operand : call.operands) {
    for (std::int64_t i = 0; i < size; ++i) call.results[0].data[i] += operand.data[i];
  }
}

// ---- a vector of channels

std::size_t channel_dimension(const Operation& operation) {
  const std::size_t rank = operation.operands[0].shape.size();
  const std::string& format = operation.text("data_format");
  if (format != "NCHW" && format != "NHWC") {
    operand_error(operation, fmt::format("data_format is {}; expected NCHW (dimension 1) or NHWC (the last)", format));
  }
  if (rank < 2) operand_error(operation, "needs an input of at least 2 dimensions");
  return format == "NCHW" ? 1 : rank - 1;
}

std::vector<TensorType> infer_bias_add(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  const Shape& bias = operation.operands[1].shape;
  const std::size_t channel = channel_dimension(operation);
  if (bias.size() != 1 || bias[0] != x[channel]) {
    operand_error(operation,
                  fmt::format("bias is {}, but dimension {} of the input {} has {} (data_format {})", to_string(bias),
                              channel, to_string(x), x[channel], operation.text("data_format")));
  }
  return {{x, common_type(operation, 0)}};
}

ShardingRule bias_add_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(operation.operands[0].shape);
  builder.operand(x);
  builder.operand({x[channel_dimension(operation)]});
  builder.result(x);
  return builder.build();
}

void bias_add_kernel(const KernelCall& call) {
  const AroundAxis around(call.operands[0].shape, channel_dimension(call.operation));
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t c = 0; c < around.size; ++c) {
      for (std::int64_t i = 0; i < around.inner; ++i, ++at) {
        call.results[0].data[at] = call.operands[0].data[at] + call.operands[1].data[c];
      }
    }
  }
}

Gradients bias_add_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  if (request.needed[0]) gradients[0] = *request.result_gradients[0];
  if (request.needed[1]) {
    const std::size_t channel = channel_dimension(request.operation);
    std::vector<std::int64_t> axes;
    for (std::size_t d = 0; d < shape_of(request, 0).size(); ++d) {
      if (d != channel) axes.push_back(static_cast<std::int64_t>(d));
    }
    gradients[1] = add_one(builder, "ReduceSum", {*request.result_gradients[0]}, {{"axis", axes}});
  }
  return gradients;
}

void add_unary_operators(std::vector<OperatorType>& table) {
  add_function(table, {.name = "Exp",
                       .kernel = unary<exponential>,
                       .slope = binary<exponential_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true});
  add_function(table,
               {.name = "Log", .kernel = unary<logarithm>, .slope = binary<logarithm_slope>, .is_monotone = true});
  add_function(table, {.name = "Sqrt",
                       .kernel = unary<root>,
                       .slope = binary<root_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true});
  add_function(table, {.name = "Rsqrt",
                       .kernel = unary<inverse_root>,
                       .slope = binary<inverse_root_slope>,
                       .slope_reads_result = true});
  add_function(table, {.name = "Abs", .kernel = unary<magnitude>, .slope = binary<magnitude_slope>});
  add_function(
      table,
      {.name = "Erf", .kernel = unary<error_function>, .slope = binary<error_function_slope>, .is_monotone = true});
  add_function(table, {.name = "Square", .kernel = unary<square>, .slope = binary<square_slope>});
  add_function(table, {.name = "Sin", .kernel = unary<sine>, .slope = binary<sine_slope>, .slope_flops = 2});
  add_function(table, {.name = "Cos", .kernel = unary<cosine>, .slope = binary<cosine_slope>, .slope_flops = 2});
  add_function(table, {.name = "Reciprocal",
                       .kernel = unary<reciprocal>,
                       .slope = binary<reciprocal_slope>,
                       .slope_reads_result = true,
                       .slope_flops = 3});
  add_function(table, {.name = "Log1p",
                       .kernel = unary<logarithm_of_more>,
                       .slope = binary<logarithm_of_more_slope>,
                       .is_monotone = true,
                       .slope_flops = 2});
  add_function(table, {.name = "Expm1",
                       .kernel = unary<exponential_less_one>,
                       .slope = binary<exponential_less_one_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true,
                       .slope_flops = 2});
  for (const auto& [name, kernel] : {std::pair<const char*, Kernel>{"Sign", unary<sign>},
                                     {"Floor", unary<rounded_down>},
                                     {"Ceil", unary<rounded_up>}}) {
    add_function(table, {.name = name, .kernel = kernel, .slope = binary<flat>, .is_monotone = true});
  }
  add_function(table, {.name = "Clip",
                       .kernel = clip_kernel,
                       .slope = clip_slope,
                       .is_monotone = true,
                       .attributes = {number("clip_value_min", std::nullopt, "values below become it"),
                                      number("clip_value_max", std::nullopt, "values above become it")},
                       .flops = 2});
  table.push_back({.name = "Neg",
                   .signature = "x -> y",
                   .infer = infer_like_first,
                   .rule_text = "... -> ...",
                   .rule = elementwise_rule,
                   .linear = {{"x"}},
                   .kernel = unary<negative>,
                   .gradient = neg_gradient});
}

}  // namespace

std::vector<OperatorType> arithmetic_operators() {
  const OperandGroups none = {}, first = {{"x1"}}, each = {{"x1"}, {"x2"}}, both = {{"x1", "x2"}};
  std::vector<OperatorType> table = {
      binary_operator("Add", binary<sum>, add_gradient, both, each),
      binary_operator("Sub", binary<difference>, sub_gradient, both, first),
      binary_operator("Mul", binary<product_of>, mul_gradient, each, none),
      binary_operator("RealDiv", binary<quotient>, div_gradient, first, none),
      binary_operator("Div", binary<quotient>, div_gradient, first, none),
      binary_operator("Pow", binary<power>, pow_gradient, none, none),
      binary_operator("Mod", binary<remainder_of>, remainder_gradient, none, none),
      binary_operator("FloorMod", binary<floored_remainder>, remainder_gradient, none, none),
      binary_operator("Maximum", binary<larger>, maximum_gradient, none, each),
      binary_operator("Minimum", binary<smaller>, maximum_gradient, none, each),
  };
  add_unary_operators(table);
  table.push_back({.name = "AddN",
                   .signature = "x... -> y",
                   .infer = infer_add_n,
                   .rule_text = "..., ... -> ...",
                   .rule = elementwise_rule,
                   .linear = {{"x..."}},
                   .monotone = {{"x"}},
                   .kernel = add_n_kernel,
                   .gradient = add_gradient});
  table.push_back(
      {.name = "BiasAdd",
       .signature = "x, bias -> y",
       .attributes = {text("data_format", "NHWC", "NHWC: the bias is of the last dimension, NCHW: of dimension 1")},
       .infer = infer_bias_add,
       .rule_text = "... c, c -> ... c",
       .rule = bias_add_rule,
       .linear = {{"x", "bias"}},
       .monotone = {{"x"}, {"bias"}},
       .kernel = bias_add_kernel,
       .gradient = bias_add_gradient,
       .notes = "strategy  ((.., c), (c))"});
  return table;
}

}  // namespace shardplan
