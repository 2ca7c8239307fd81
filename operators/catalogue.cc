// The catalogue: one entry per operator. Families share inference, rules and kernels, which stand in the file of the family.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "operators/batch_norm.h"
#include "operators/contraction.h"
#include "operators/convolution.h"
#include "operators/elementwise.h"
#include "operators/indexing.h"
#include "operators/loss.h"
#include "operators/normalisation.h"
#include "operators/operator_type.h"
#include "operators/optimizer.h"
#include "operators/phases.h"
#include "operators/pooling.h"
#include "operators/rearranging.h"
#include "operators/reduction.h"
#include "operators/reshaping.h"

namespace shardplan {
namespace {

AttributeSpec flag(std::string name, bool standard, std::string meaning) {
  return {std::move(name), AttributeKind::kFlag, standard, std::move(meaning)};
}
AttributeSpec integer(std::string name, std::optional<std::int64_t> standard, std::string meaning) {
  return {std::move(name), AttributeKind::kInteger, standard, std::move(meaning)};
}
AttributeSpec number(std::string name, std::optional<double> standard, std::string meaning) {
  return {std::move(name), AttributeKind::kNumber, standard, std::move(meaning)};
}
AttributeSpec text(std::string name, std::optional<std::string> standard, std::string meaning) {
  return {std::move(name), AttributeKind::kText, standard, std::move(meaning)};
}
AttributeSpec list(std::string name, std::optional<std::vector<std::int64_t>> standard, std::string meaning) {
  return {std::move(name), AttributeKind::kList, standard, std::move(meaning)};
}
std::optional<std::vector<std::int64_t>> empty_list() { return std::vector<std::int64_t>{}; }

/// y = function(x), element by element.
template <auto function>
OperatorType map(std::string name, Gradient gradient, ShardingRule (*rule)(const Operation&) = elementwise<Passes::kNothing>) {
  return {.name = std::move(name),
          .operand_names = {"x"},
          .result_names = {"y"},
          .infer = infer_unary,
          .rule = rule,
          .kernel = unary<function>,
          .gradient = gradient,
          .rule_text = "... -> ..."};
}

/// dx = dy * slope(x or y): function(dy, x or y).
template <auto function>
OperatorType slope(std::string name, std::string kept) {
  return {.name = std::move(name),
          .operand_names = {"dy", std::move(kept)},
          .result_names = {"dx"},
          .infer = infer_unary,
          .rule = elementwise<Passes::kFirst>,
          .kernel = binary<function>,
          .rule_text = "..., ... -> ...",
          .is_internal = true};
}

/// y = function(x1, x2), broadcast.
template <auto function>
OperatorType combine(std::string name, Gradient gradient, ShardingRule (*rule)(const Operation&)) {
  return {.name = std::move(name),
          .operand_names = {"x1", "x2"},
          .result_names = {"y"},
          .infer = infer_broadcast,
          .rule = rule,
          .kernel = binary<function>,
          .gradient = gradient,
          .rule_text = "..., ... -> ...",
          .notes = "equal dimensions are cut alike, broadcast ones are not cut"};
}

template <auto function>
OperatorType compare(std::string name, std::vector<TensorType> (*infer)(const Operation&) = infer_comparison) {
  OperatorType type = combine<function>(std::move(name), nullptr, elementwise<Passes::kNothing>);
  type.infer = infer;
  return type;
}

/// A reduction over `axis`.
OperatorType reduce(std::string name, Kernel kernel, Gradient gradient, std::string rule_text) {
  return {.name = std::move(name),
          .operand_names = {"x"},
          .result_names = {"y"},
          .attributes = {list("axis", empty_list(), "dimensions that are reduced; all if empty"),
                         flag("keep_dims", false, "keep them as size 1")},
          .infer = infer_reduce,
          .rule = reduce_rule,
          .kernel = kernel,
          .gradient = gradient,
          .rule_text = std::move(rule_text)};
}

/// A view of the same elements in another shape.
OperatorType view(std::string name, std::vector<AttributeSpec> attributes, std::vector<TensorType> (*infer)(const Operation&)) {
  return {.name = std::move(name),
          .operand_names = {"x"},
          .result_names = {"y"},
          .attributes = std::move(attributes),
          .infer = infer,
          .rule = reshape_rule,
          .kernel = copy_kernel,
          .work = WorkKind::kView,
          .flops_per_point = 0,
          .gradient = reshape_gradient,
          .rule_text = "the common factors of both shapes, as in (a b) c -> a (b c)"};
}

/// A statistic over `axis` of the first operand's shape: a phase.
OperatorType statistic(std::string name, std::vector<std::string> operands, std::vector<std::string> results, Kernel kernel) {
  return {.name = std::move(name),
          .operand_names = std::move(operands),
          .result_names = results,
          .attributes = {list("axis", std::nullopt, "dimensions that are reduced")},
          .infer = results.size() == 1 ? infer_statistic : infer_two_statistics,
          .rule = statistic_rule,
          .kernel = kernel,
          .flops_per_point = 2,
          .rule_text = "... k, ... -> ... 1; k: sum",
          .is_internal = true};
}

/// A phase that ends a norm or softmax: shaped as the first operand, the others broadcast to it.
OperatorType apply(std::string name, std::vector<std::string> operands, std::vector<AttributeSpec> attributes, Kernel kernel) {
  return {.name = std::move(name),
          .operand_names = std::move(operands),
          .result_names = {"y"},
          .attributes = std::move(attributes),
          .infer = infer_like_first,
          .rule = elementwise<Passes::kNothing>,
          .kernel = kernel,
          .flops_per_point = 4,
          .rule_text = "..., ... -> ...",
          .is_internal = true};
}

AttributeSpec softmax_axis() { return integer("axis", -1, "the normalised dimension"); }
AttributeSpec epsilon(double standard) { return number("epsilon", standard, "added to the variance"); }
std::vector<AttributeSpec> norm_attributes() {
  return {integer("begin_norm_axis", -1, "first normalised dimension"),
          integer("begin_params_axis", -1, "first dimension of gamma and beta"), epsilon(1e-5)};
}
std::vector<AttributeSpec> matmul_attributes() {
  return {flag("transpose_a", false, "x1 is [.., k, m]"), flag("transpose_b", false, "x2 is [.., n, k]")};
}
std::vector<AttributeSpec> slice_attributes(std::optional<std::vector<std::int64_t>> strides) {
  return {list("begin", std::nullopt, "first position in each dimension"),
          list("end", std::nullopt, "first position behind; negative: from the end"),
          list("strides", std::move(strides), "steps; 1 if empty")};
}
std::vector<AttributeSpec> convolution_attributes(std::string size = {}) {
  std::vector<AttributeSpec> attributes = {
      text("pad_mode", "valid", "valid, same or pad"), list("pad", std::vector<std::int64_t>{0}, "of pad_mode pad: one number, or top, bottom, left, right"),
      list("stride", std::vector<std::int64_t>{1}, "one number, or height, width"), list("dilation", std::vector<std::int64_t>{1}, "one number, or height, width"),
      integer("group", 1, "channels are convolved within groups")};
  if (!size.empty()) attributes.push_back(list(std::move(size), std::nullopt, "height, width"));
  return attributes;
}
std::vector<AttributeSpec> pool_attributes(bool has_input_size = false) {
  std::vector<AttributeSpec> attributes = {
      list("kernel_size", std::vector<std::int64_t>{1}, "one number, or height, width"), list("strides", std::vector<std::int64_t>{1}, "one number, or height, width"),
      text("pad_mode", "valid", "valid, same or pad"), list("pad", std::vector<std::int64_t>{0}, "of pad_mode pad: one number, or top, bottom, left, right")};
  if (has_input_size) attributes.push_back(list("input_size", std::nullopt, "height, width of x"));
  return attributes;
}
AttributeSpec reduction() { return text("reduction", "mean", "of the rows' losses: mean, sum or none"); }

/// An optimizer's update.
OperatorType update(std::string name, std::vector<std::string> operands, std::vector<AttributeSpec> attributes, Kernel kernel, double flops_per_point) {
  std::vector<std::string> results(operands.begin(), operands.end() - 1);
  attributes.insert(attributes.begin(), number("learning_rate", std::nullopt, "factor of each step"));
  attributes.push_back(number("weight_decay", 0, "share of the parameter that is taken off"));
  return {.name = std::move(name), .operand_names = std::move(operands), .result_names = std::move(results),
          .attributes = std::move(attributes), .infer = infer_update, .rule = update_rule, .kernel = kernel,
          .flops_per_point = flops_per_point, .rule_text = "..., ..., ... -> ..., ..."};
}
std::vector<AttributeSpec> adam_attributes() {
  return {number("beta1", 0.9, "decay of the first moment"), number("beta2", 0.999, "decay of the second moment"),
          number("eps", 1e-8, "added to the root of the second moment")};
}

/// A phase of BatchNorm with channel vectors.
OperatorType channel_phase(std::string name, std::vector<std::string> operands, std::vector<std::string> results,
                           std::vector<AttributeSpec> attributes, bool is_statistic, Kernel kernel) {
  const bool has_two = results.size() == 2;
  return {.name = std::move(name), .operand_names = std::move(operands), .result_names = std::move(results),
          .attributes = std::move(attributes),
          .infer = !is_statistic ? infer_channel_apply : has_two ? infer_two_channel_statistics : infer_channel_statistic,
          .rule = is_statistic ? channel_statistic_rule : channel_apply_rule, .kernel = kernel, .flops_per_point = 4,
          .rule_text = is_statistic ? "n c ..., c -> c; n, ...: sum" : "n c ..., c -> n c ...", .is_internal = true};
}

OperatorType matmul(std::string name) {
  return {.name = std::move(name),
          .operand_names = {"x1", "x2"},
          .result_names = {"y"},
          .attributes = matmul_attributes(),
          .infer = infer_matmul,
          .rule = matmul_rule,
          .kernel = contract,
          .work = WorkKind::kContraction,
          .flops_per_point = 2,
          .gradient = matmul_gradient,
          .rule_text = "... m k, k n -> ... m n",
          .notes = "strategy  ((.., a, b), (b, c)), with transpose_b ((.., a, b), (c, b)); b > 1 adds all_reduce,\n"
                   "          or reduce_scatter with out_strategy ((.., a*b, c))\n"
                   "errors    cuts x1 in A along the summed dimension but x2 in B"};
}

std::vector<OperatorType> make_catalogue() {
  std::vector<OperatorType> all = {
      // ---- contractions ------------------------------------------------------------------------------------------------
      matmul("MatMul"),
      matmul("BatchMatMul"),
      {.name = "Einsum", .operand_names = {"x..."}, .result_names = {"y"},
       .attributes = {text("equation", std::nullopt, "as in \"bsh,hf->bsf\"; one or two terms")},
       .infer = infer_einsum, .rule = einsum_rule, .kernel = contract, .work = WorkKind::kContraction, .flops_per_point = 2,
       .gradient = einsum_gradient, .rule_text = "as the equation says"},

      {.name = "Conv2D", .operand_names = {"x", "weight"}, .result_names = {"y"}, .attributes = convolution_attributes(),
       .infer = infer_conv2d, .rule = conv2d_rule, .kernel = conv2d_kernel, .work = WorkKind::kContraction, .flops_per_point = 2,
       .gradient = conv2d_gradient, .rule_text = "n (g i) s*h+kh s*w+kw, (g o) i kh kw -> n (g o) h w; i: sum; kh, kw: whole",
       .notes = "strategy  ((n, i, h, w), (o, i, 1, 1)); h or w cut needs a halo, no wider than the neighbour's piece"},
      {.name = "Conv2DBackpropInput", .operand_names = {"dy", "weight"}, .result_names = {"dx"},
       .attributes = convolution_attributes("input_size"), .infer = infer_conv2d_backprop_input, .rule = conv2d_backprop_input_rule,
       .kernel = conv2d_backprop_input_kernel, .work = WorkKind::kContraction, .whole_flops = conv2d_backprop_input_flops,
       .rule_text = "n (g o) h+kh w+kw, (g o) i kh kw -> n (g i) (h th) (w tw); o: sum; kh, kw, th, tw: whole", .is_internal = true},
      {.name = "Conv2DBackpropFilter", .operand_names = {"dy", "x"}, .result_names = {"dweight"},
       .attributes = convolution_attributes("kernel_size"), .infer = infer_conv2d_backprop_filter,
       .rule = conv2d_backprop_filter_rule, .kernel = conv2d_backprop_filter_kernel, .work = WorkKind::kContraction,
       .flops_per_point = 2, .rule_text = "n (g o) h w, n (g i) s*h+kh s*w+kw -> (g o) i kh kw; n, h, w: sum; kh, kw: whole",
       .is_internal = true},

      // ---- pooling -----------------------------------------------------------------------------------------------------
      {.name = "MaxPool", .operand_names = {"x"}, .result_names = {"y"}, .attributes = pool_attributes(), .infer = infer_pool,
       .rule = pool_rule, .kernel = max_pool_kernel, .gradient = max_pool_gradient,
       .rule_text = "n c s*h+kh s*w+kw -> n c h w; kh, kw: whole"},
      {.name = "AvgPool", .operand_names = {"x"}, .result_names = {"y"}, .attributes = pool_attributes(), .infer = infer_pool,
       .rule = pool_rule, .kernel = avg_pool_kernel, .gradient = avg_pool_gradient,
       .rule_text = "n c s*h+kh s*w+kw -> n c h w; kh, kw: whole"},
      {.name = "MaxPoolGrad", .operand_names = {"dy", "x"}, .result_names = {"dx"}, .attributes = pool_attributes(),
       .infer = infer_max_pool_grad, .rule = max_pool_grad_rule, .kernel = max_pool_grad_kernel,
       .rule_text = "n c h+kh w+kw, n c s*h+rh s*w+rw -> n c (h th) (w tw); only n, c, h, w are cut", .is_internal = true},
      {.name = "AvgPoolGrad", .operand_names = {"dy"}, .result_names = {"dx"}, .attributes = pool_attributes(true),
       .infer = infer_avg_pool_grad, .rule = avg_pool_grad_rule, .kernel = avg_pool_grad_kernel,
       .rule_text = "n c h+kh w+kw -> n c (h th) (w tw); only n, c, h, w are cut", .is_internal = true},

      // ---- elementwise, one operand ------------------------------------------------------------------------------------
      map<[](double x) { return 0 < x ? x : 0; }>("ReLU", gradient_from_result, elementwise<Passes::kFirstMonotone>),
      slope<[](double dy, double y) { return 0 < y ? dy : 0; }>("ReLUGrad", "y"),
      {.name = "GeLU", .operand_names = {"x"}, .result_names = {"y"},
       .attributes = {flag("approximate", true, "the tanh form, as MindSpore; false: by erf")},
       .infer = infer_unary, .rule = elementwise<Passes::kNothing>, .kernel = gelu_kernel, .flops_per_point = 8,
       .gradient = gradient_from_operand, .rule_text = "... -> ..."},
      {.name = "GeLUGrad", .operand_names = {"dy", "x"}, .result_names = {"dx"},
       .attributes = {flag("approximate", true, "as the forward operator's")},
       .infer = infer_unary, .rule = elementwise<Passes::kFirst>, .kernel = gelu_grad_kernel, .flops_per_point = 16,
       .rule_text = "..., ... -> ...", .is_internal = true},
      map<[](double x) { return x * sigmoid(x); }>("SiLU", gradient_from_operand),
      slope<[](double dy, double x) { return dy * sigmoid(x) * (1 + x * (1 - sigmoid(x))); }>("SiLUGrad", "x"),
      map<[](double x) { return sigmoid(x); }>("Sigmoid", gradient_from_result, elementwise<Passes::kFirstMonotone>),
      slope<[](double dy, double y) { return dy * y * (1 - y); }>("SigmoidGrad", "y"),
      map<[](double x) { return std::tanh(x); }>("Tanh", gradient_from_result, elementwise<Passes::kFirstMonotone>),
      slope<[](double dy, double y) { return dy * (1 - y * y); }>("TanhGrad", "y"),
      map<[](double x) { return std::exp(x); }>("Exp", gradient_from_result, elementwise<Passes::kFirstMonotone>),
      slope<[](double dy, double y) { return dy * y; }>("ExpGrad", "y"),
      map<[](double x) { return std::log(x); }>("Log", gradient_from_operand, elementwise<Passes::kFirstMonotone>),
      slope<[](double dy, double x) { return dy / x; }>("LogGrad", "x"),
      map<[](double x) { return std::sqrt(x); }>("Sqrt", gradient_from_result, elementwise<Passes::kFirstMonotone>),
      slope<[](double dy, double y) { return dy / (2 * y); }>("SqrtGrad", "y"),
      map<[](double x) { return 1 / std::sqrt(x); }>("Rsqrt", gradient_from_result),
      slope<[](double dy, double y) { return -0.5 * dy * y * y * y; }>("RsqrtGrad", "y"),
      map<[](double x) { return -x; }>("Neg", neg_gradient, elementwise<Passes::kFirst>),
      map<[](double x) { return std::abs(x); }>("Abs", gradient_from_operand),
      slope<[](double dy, double x) { return 0 < x ? dy : x < 0 ? -dy : 0; }>("AbsGrad", "x"),
      map<[](double x) { return std::erf(x); }>("Erf", gradient_from_operand, elementwise<Passes::kFirstMonotone>),
      slope<[](double dy, double x) { return dy * 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }>("ErfGrad", "x"),
      map<[](double x) { return x * x; }>("Square", gradient_from_operand),
      slope<[](double dy, double x) { return 2 * dy * x; }>("SquareGrad", "x"),
      {.name = "Cast", .operand_names = {"x"}, .result_names = {"y"},
       .attributes = {text("dtype", std::nullopt, "the result's type")},
       .infer = infer_cast, .rule = cast_rule, .kernel = cast_kernel, .gradient = cast_gradient, .rule_text = "... -> ..."},
      {.name = "Dropout", .operand_names = {"x"}, .result_names = {"y", "mask"},
       .attributes = {number("keep_prob", 0.5, "probability that an element is kept")},
       .infer = infer_dropout, .rule = elementwise<Passes::kNothing>, .kernel = dropout_kernel, .gradient = dropout_gradient,
       .rule_text = "... -> ..., ...", .notes = "the mask follows from seed and global position: the same on any mesh"},
      {.name = "DropoutGrad", .operand_names = {"dy", "mask"}, .result_names = {"dx"},
       .attributes = {number("keep_prob", 0.5, "as the forward operator's")},
       .infer = infer_dropout_grad, .rule = elementwise<Passes::kFirst>, .kernel = dropout_grad_kernel,
       .rule_text = "..., ... -> ...", .is_internal = true},

      // ---- elementwise, several operands -------------------------------------------------------------------------------
      combine<[](double a, double b) { return a + b; }>("Add", add_gradient, elementwise<Passes::kJointlyAndEachMonotone>),
      combine<[](double a, double b) { return a - b; }>("Sub", sub_gradient, elementwise<Passes::kJointlyAndFirstMonotone>),
      combine<[](double a, double b) { return a * b; }>("Mul", mul_gradient, elementwise<Passes::kEach>),
      combine<[](double a, double b) { return a / b; }>("RealDiv", div_gradient, elementwise<Passes::kFirst>),
      combine<[](double a, double b) { return a / b; }>("Div", div_gradient, elementwise<Passes::kFirst>),
      combine<[](double a, double b) { return std::pow(a, b); }>("Pow", pow_gradient, elementwise<Passes::kNothing>),
      combine<[](double a, double b) { return a < b ? b : a; }>("Maximum", maximum_gradient, elementwise<Passes::kEachMonotone>),
      combine<[](double a, double b) { return a < b ? a : b; }>("Minimum", maximum_gradient, elementwise<Passes::kEachMonotone>),
      compare<[](double a, double b) { return a == b ? 1.0 : 0.0; }>("Equal"),
      compare<[](double a, double b) { return a != b ? 1.0 : 0.0; }>("NotEqual"),
      compare<[](double a, double b) { return a < b ? 1.0 : 0.0; }>("Less"),
      compare<[](double a, double b) { return a <= b ? 1.0 : 0.0; }>("LessEqual"),
      compare<[](double a, double b) { return b < a ? 1.0 : 0.0; }>("Greater"),
      compare<[](double a, double b) { return b <= a ? 1.0 : 0.0; }>("GreaterEqual"),
      compare<[](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }>("LogicalAnd", infer_logical),
      compare<[](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }>("LogicalOr", infer_logical),
      {.name = "LogicalNot", .operand_names = {"x"}, .result_names = {"y"}, .infer = infer_logical,
       .rule = elementwise<Passes::kNothing>, .kernel = unary<[](double x) { return x != 0 ? 0.0 : 1.0; }>, .rule_text = "... -> ..."},
      {.name = "Select", .operand_names = {"condition", "x", "y"}, .result_names = {"z"}, .infer = infer_select,
       .rule = select_rule, .kernel = select_kernel, .gradient = select_gradient, .rule_text = "..., ..., ... -> ..."},
      {.name = "AddN", .operand_names = {"x..."}, .result_names = {"y"}, .infer = infer_add_n,
       .rule = elementwise<Passes::kJointlyAndEachMonotone>, .kernel = add_n_kernel, .gradient = add_gradient,
       .rule_text = "..., ... -> ..."},
      {.name = "BiasAdd", .operand_names = {"x", "bias"}, .result_names = {"y"},
       .attributes = {text("data_format", "NHWC", "NHWC: the bias is of the last dimension, NCHW: of dimension 1")},
       .infer = infer_bias_add, .rule = bias_add_rule, .kernel = bias_add_kernel, .gradient = bias_add_gradient,
       .rule_text = "... c, c -> ... c", .notes = "strategy  ((.., c), (c))"},

      // ---- reductions --------------------------------------------------------------------------------------------------
      reduce("ReduceSum", reduce_sum_kernel, reduce_sum_gradient, "... k -> ...; k: sum"),
      reduce("ReduceMean", reduce_mean_kernel, reduce_mean_gradient, "... k -> ...; k: sum, of shares of the global mean"),
      reduce("ReduceMax", reduce_max_kernel, reduce_extreme_gradient, "... k -> ...; k: max"),
      reduce("ReduceMin", reduce_min_kernel, reduce_extreme_gradient, "... k -> ...; k: min"),
      {.name = "SquareSum", .operand_names = {"x"}, .result_names = {"y"}, .infer = infer_square_sum, .rule = square_sum_rule,
       .kernel = square_sum_kernel, .flops_per_point = 2, .rule_text = "... -> ; all: sum"},
      {.name = "CumSum", .operand_names = {"x"}, .result_names = {"y"},
       .attributes = {integer("axis", std::nullopt, "along which sums run"), flag("exclusive", false, "without the element itself"),
                      flag("reverse", false, "from the end")},
       .infer = infer_cum_sum, .rule = cum_sum_rule, .kernel = cum_sum_kernel, .gradient = cum_sum_gradient,
       .rule_text = "... k -> ... k; k: whole"},
      {.name = "TopK", .operand_names = {"x"}, .result_names = {"values", "indices"},
       .attributes = {integer("k", std::nullopt, "how many of the last dimension")},
       .infer = infer_top_k, .rule = top_k_rule, .kernel = top_k_kernel, .gradient = top_k_gradient,
       .rule_text = "... n -> ... k, ... k; n, k: whole"},
      {.name = "TopKGrad", .operand_names = {"dvalues", "indices"}, .result_names = {"dx"},
       .attributes = {integer("size", std::nullopt, "of the last dimension of x")},
       .infer = infer_top_k_grad, .rule = top_k_grad_rule, .kernel = top_k_grad_kernel,
       .rule_text = "... k, ... k -> ... n; n, k: whole", .is_internal = true},

      // ---- softmax and norms -------------------------------------------------------------------------------------------
      {.name = "Softmax", .operand_names = {"x"}, .result_names = {"y"}, .attributes = {softmax_axis()},
       .infer = infer_softmax, .rule = softmax_rule, .kernel = run_phases, .flops_per_point = 5, .phases = softmax_phases,
       .gradient = gradient_from_result, .rule_text = "... k -> ... k; k: normalised"},
      {.name = "SoftmaxGrad", .operand_names = {"dy", "y"}, .result_names = {"dx"}, .attributes = {softmax_axis()},
       .infer = infer_softmax_grad, .rule = softmax_rule, .kernel = run_phases, .flops_per_point = 4,
       .phases = softmax_grad_phases, .rule_text = "... k, ... k -> ... k; k: normalised", .is_internal = true},
      {.name = "LogSoftmax", .operand_names = {"x"}, .result_names = {"y"}, .attributes = {softmax_axis()},
       .infer = infer_softmax, .rule = softmax_rule, .kernel = run_phases, .flops_per_point = 5, .phases = log_softmax_phases,
       .gradient = gradient_from_result, .rule_text = "... k -> ... k; k: normalised"},
      {.name = "LogSoftmaxGrad", .operand_names = {"dy", "y"}, .result_names = {"dx"}, .attributes = {softmax_axis()},
       .infer = infer_softmax_grad, .rule = softmax_rule, .kernel = run_phases, .flops_per_point = 4,
       .phases = log_softmax_grad_phases, .rule_text = "... k, ... k -> ... k; k: normalised", .is_internal = true},
      {.name = "LayerNorm", .operand_names = {"x", "gamma", "beta"}, .result_names = {"y"}, .attributes = norm_attributes(),
       .infer = infer_layer_norm, .rule = layer_norm_rule, .kernel = run_phases, .flops_per_point = 8,
       .phases = layer_norm_phases, .gradient = layer_norm_gradient, .rule_text = "... k, k, k -> ... k; k: normalised"},
      {.name = "LayerNormGrad", .operand_names = {"dy", "x", "gamma"}, .result_names = {"dx", "dgamma", "dbeta"},
       .attributes = norm_attributes(), .infer = infer_layer_norm_grad, .rule = layer_norm_grad_rule, .kernel = run_phases,
       .flops_per_point = 16, .phases = layer_norm_grad_phases,
       .rule_text = "... k, ... k, k -> ... k, k, k; k: normalised; ...: sum", .is_internal = true},
      {.name = "RmsNorm", .operand_names = {"x", "gamma"}, .result_names = {"y"}, .attributes = {epsilon(1e-6)},
       .infer = infer_rms_norm, .rule = rms_norm_rule, .kernel = run_phases, .flops_per_point = 6, .phases = rms_norm_phases,
       .gradient = rms_norm_gradient, .rule_text = "... k, k -> ... k; k: normalised"},
      {.name = "RmsNormGrad", .operand_names = {"dy", "x", "gamma"}, .result_names = {"dx", "dgamma"},
       .attributes = {epsilon(1e-6)}, .infer = infer_rms_norm_grad, .rule = rms_norm_grad_rule, .kernel = run_phases,
       .flops_per_point = 12, .phases = rms_norm_grad_phases, .rule_text = "... k, ... k, k -> ... k, k; k: normalised; ...: sum",
       .is_internal = true},
      statistic("ExpSum", {"x", "max"}, {"sum"}, exp_sum_kernel),
      {.name = "SoftmaxExp", .operand_names = {"x", "max"}, .result_names = {"exp", "sum"},
       .attributes = {list("axis", std::nullopt, "the normalised dimension")}, .infer = infer_exp_and_sum,
       .rule = exp_and_sum_rule, .kernel = exp_and_sum_kernel, .flops_per_point = 3, .rule_text = "... k, ... 1 -> ... k, ... 1; k: sum",
       .is_internal = true},
      statistic("ProductSum", {"x1", "x2"}, {"sum"}, product_sum_kernel),
      statistic("CentredSquareMean", {"x", "mean"}, {"variance"}, centred_square_mean_kernel),
      statistic("SquareMean", {"x"}, {"mean"}, square_mean_kernel),
      apply("SoftmaxGradApply", {"dy", "y", "sum"}, {}, softmax_grad_apply_kernel),
      apply("LogSoftmaxApply", {"x", "max", "sum"}, {}, log_softmax_apply_kernel),
      apply("LogSoftmaxGradApply", {"dy", "y", "sum"}, {}, log_softmax_grad_apply_kernel),
      apply("LayerNormApply", {"x", "gamma", "beta", "mean", "variance"}, {epsilon(1e-5)}, layer_norm_apply_kernel),
      {.name = "LayerNormGradMeans", .operand_names = {"dy", "x", "gamma", "mean", "variance"}, .result_names = {"m1", "m2"},
       .attributes = {list("axis", std::nullopt, "the normalised dimensions"), epsilon(1e-5)}, .infer = infer_two_statistics,
       .rule = statistic_rule, .kernel = layer_norm_grad_means_kernel, .flops_per_point = 6,
       .rule_text = "... k, ... k, k, ... 1, ... 1 -> ... 1, ... 1; k: sum", .is_internal = true},
      {.name = "LayerNormGradApply", .operand_names = {"dy", "x", "gamma", "mean", "variance", "m1", "m2"},
       .result_names = {"dx", "dgamma", "dbeta"}, .attributes = {epsilon(1e-5)}, .infer = infer_norm_grad_apply,
       .rule = norm_grad_apply_rule, .kernel = layer_norm_grad_apply_kernel, .flops_per_point = 10,
       .rule_text = "... k, ... k, k, ... 1 (4 times) -> ... k, k, k; ...: sum", .is_internal = true},
      apply("RmsNormApply", {"x", "gamma", "square_mean"}, {epsilon(1e-6)}, rms_norm_apply_kernel),
      statistic("RmsNormGradMean", {"dy", "x", "gamma"}, {"mean"}, rms_norm_grad_mean_kernel),
      {.name = "RmsNormGradApply", .operand_names = {"dy", "x", "gamma", "square_mean", "mean"}, .result_names = {"dx", "dgamma"},
       .attributes = {epsilon(1e-6)}, .infer = infer_norm_grad_apply, .rule = norm_grad_apply_rule,
       .kernel = rms_norm_grad_apply_kernel, .flops_per_point = 8, .rule_text = "... k, ... k, k, ... 1, ... 1 -> ... k, k; ...: sum",
       .is_internal = true},

      {.name = "BatchNorm", .operand_names = {"x", "gamma", "beta", "moving_mean", "moving_variance"},
       .result_names = {"y", "moving_mean", "moving_variance", "mean", "variance"},
       .attributes = {flag("is_training", false, "normalise by the batch's statistics"), epsilon(1e-5),
                      number("momentum", 0.1, "share of the batch in the moving statistics")},
       .infer = infer_batch_norm, .rule = batch_norm_rule, .kernel = run_phases, .flops_per_point = 8, .phases = batch_norm_phases,
       .gradient = batch_norm_gradient, .rule_text = "n c ..., c, c, c, c -> n c ..., c, c, c, c; n, ...: normalised",
       .notes = "strategy  ((n, c, h, w), (c), (c), (c), (c)); statistics are of the whole batch, however it is cut;\n"
                "          in inference y is the only result and nothing is normalised"},
      {.name = "BatchNormGrad", .operand_names = {"dy", "x", "gamma", "mean", "variance"}, .result_names = {"dx", "dgamma", "dbeta"},
       .attributes = {epsilon(1e-5)}, .infer = infer_batch_norm_grad, .rule = batch_norm_grad_rule, .kernel = run_phases,
       .flops_per_point = 12, .phases = batch_norm_grad_phases,
       .rule_text = "n c ..., n c ..., c, c, c -> n c ..., c, c; n, ...: normalised", .is_internal = true},
      channel_phase("ChannelMean", {"x"}, {"mean"}, {}, true, channel_mean_kernel),
      channel_phase("ChannelVariance", {"x", "mean"}, {"variance"}, {}, true, channel_variance_kernel),
      channel_phase("BatchNormApply", {"x", "gamma", "beta", "mean", "variance"}, {"y"}, {epsilon(1e-5)}, false, batch_norm_apply_kernel),
      {.name = "MovingAverage", .operand_names = {"moving", "value"}, .result_names = {"moving"},
       .attributes = {number("momentum", std::nullopt, "share of the new value"), number("scale", std::nullopt, "of the new value")},
       .infer = infer_moving_average, .rule = moving_average_rule, .kernel = moving_average_kernel, .rule_text = "c, c -> c",
       .is_internal = true},
      channel_phase("BatchNormGradSums", {"dy", "x", "mean", "variance"}, {"dgamma", "dbeta"}, {epsilon(1e-5)}, true, batch_norm_grad_sums_kernel),
      channel_phase("BatchNormGradApply", {"dy", "x", "gamma", "mean", "variance", "dgamma", "dbeta"}, {"dx"}, {epsilon(1e-5)}, false, batch_norm_grad_apply_kernel),

      // ---- losses ------------------------------------------------------------------------------------------------------
      {.name = "SoftmaxCrossEntropyWithLogits", .operand_names = {"logits", "labels"}, .result_names = {"loss"},
       .infer = infer_cross_entropy, .rule = cross_entropy_rule, .kernel = run_phases, .flops_per_point = 5,
       .phases = cross_entropy_phases, .gradient = cross_entropy_gradient, .rule_text = "... c, ... c -> ...; c: normalised",
       .notes = "one loss per row; labels are probabilities"},
      {.name = "SoftmaxCrossEntropyGrad", .operand_names = {"dloss", "logits", "labels"}, .result_names = {"dlogits"},
       .infer = infer_cross_entropy_grad, .rule = cross_entropy_grad_rule, .kernel = run_phases, .flops_per_point = 6,
       .phases = cross_entropy_grad_phases, .rule_text = "..., ... c, ... c -> ... c; c: normalised", .is_internal = true},
      {.name = "SparseSoftmaxCrossEntropyWithLogits", .operand_names = {"logits", "labels"}, .result_names = {"loss"},
       .attributes = {reduction()}, .infer = infer_sparse_cross_entropy, .rule = sparse_cross_entropy_rule, .kernel = run_phases,
       .flops_per_point = 4, .phases = sparse_cross_entropy_phases, .gradient = sparse_cross_entropy_gradient,
       .rule_text = "... c, ... -> ; c: normalised; ...: sum", .notes = "labels are integers"},
      {.name = "SparseSoftmaxCrossEntropyGrad", .operand_names = {"dloss", "logits", "labels"}, .result_names = {"dlogits"},
       .attributes = {reduction()}, .infer = infer_sparse_cross_entropy_grad, .rule = sparse_cross_entropy_grad_rule,
       .kernel = run_phases, .flops_per_point = 5, .phases = sparse_cross_entropy_grad_phases,
       .rule_text = ", ... c, ... -> ... c; c: normalised", .is_internal = true},
      {.name = "CrossEntropyTerms", .operand_names = {"logits", "labels", "max", "sum"}, .result_names = {"loss"},
       .infer = infer_loss_terms, .rule = loss_terms_rule, .kernel = cross_entropy_terms_kernel, .flops_per_point = 2,
       .rule_text = "... c, ... c, ... 1, ... 1 -> ...; c: sum", .is_internal = true},
      {.name = "CrossEntropyGradApply", .operand_names = {"dloss", "logits", "labels", "max", "sum", "label_sum"},
       .result_names = {"dlogits"}, .infer = infer_like_second, .rule = loss_grad_apply_rule, .kernel = cross_entropy_grad_apply_kernel,
       .flops_per_point = 5, .rule_text = "..., ... c, ... c, ... 1 (3 times) -> ... c", .is_internal = true},
      {.name = "SparsePick", .operand_names = {"logits", "labels"}, .result_names = {"picked"}, .infer = infer_loss_terms,
       .rule = loss_terms_rule, .kernel = sparse_pick_kernel, .flops_per_point = 0, .rule_text = "... c, ... -> ...; c: sum",
       .is_internal = true},
      {.name = "SparseCrossEntropyApply", .operand_names = {"max", "sum", "picked"}, .result_names = {"loss"},
       .attributes = {reduction()}, .infer = infer_reduced_loss, .rule = reduced_loss_rule,
       .kernel = sparse_cross_entropy_apply_kernel, .flops_per_point = 3, .rule_text = "... 1, ... 1, ... -> ; ...: sum",
       .is_internal = true},
      {.name = "SparseCrossEntropyGradApply", .operand_names = {"dloss", "logits", "labels", "max", "sum"},
       .result_names = {"dlogits"}, .attributes = {reduction()}, .infer = infer_like_second, .rule = loss_grad_apply_rule,
       .kernel = sparse_cross_entropy_grad_apply_kernel, .flops_per_point = 4, .rule_text = ", ... c, ..., ... 1, ... 1 -> ... c",
       .is_internal = true},

      // ---- optimizers --------------------------------------------------------------------------------------------------
      update("ApplyGradientDescent", {"param", "grad"}, {}, gradient_descent_kernel, 4),
      update("ApplyMomentum", {"param", "moment", "grad"}, {number("momentum", 0.9, "decay of the moment")}, momentum_kernel, 6),
      update("ApplyAdam", {"param", "m", "v", "step", "grad"}, adam_attributes(), adam_kernel, 14),
      update("ApplyAdamW", {"param", "m", "v", "step", "grad"}, adam_attributes(), adam_kernel, 14),
      {.name = "ClipScale", .operand_names = {"square_sum"}, .result_names = {"scale"},
       .attributes = {number("clip_norm", std::nullopt, "largest global norm of all gradients")}, .infer = infer_unary,
       .rule = elementwise<Passes::kNothing>, .kernel = clip_scale_kernel, .rule_text = " -> "},

      // ---- views -------------------------------------------------------------------------------------------------------
      view("Reshape", {list("shape", std::nullopt, "of the result; one -1 is solved for")}, infer_reshape),
      view("Flatten", {integer("start_dim", 1, "first dimension that is joined"), integer("end_dim", -1, "last one")}, infer_flatten),
      view("ExpandDims", {integer("axis", std::nullopt, "where a dimension of size 1 is put in")}, infer_expand_dims),
      view("Squeeze", {list("axis", empty_list(), "dimensions of size 1 that are dropped; all if empty")}, infer_squeeze),
      {.name = "Identity", .operand_names = {"x"}, .result_names = {"y"}, .infer = infer_unary,
       .rule = elementwise<Passes::kLinearUnary>, .kernel = copy_kernel, .work = WorkKind::kView, .flops_per_point = 0,
       .gradient = identity_gradient, .rule_text = "... -> ..."},

      // ---- moving elements ---------------------------------------------------------------------------------------------
      {.name = "Transpose", .operand_names = {"x"}, .result_names = {"y"},
       .attributes = {list("perm", std::nullopt, "for each dimension of the result the one of x")},
       .infer = infer_transpose, .rule = transpose_rule, .kernel = transpose_kernel, .flops_per_point = 0,
       .gradient = transpose_gradient, .rule_text = "a b ... -> perm"},
      {.name = "Split", .operand_names = {"x"}, .result_names = {"y..."},
       .attributes = {integer("axis", 0, "the dimension that is cut"), integer("output_num", 1, "in how many equal pieces"),
                      list("size_splits", empty_list(), "instead: the sizes of the pieces")},
       .infer = infer_split, .rule = split_rule, .kernel = split_kernel, .flops_per_point = 0, .gradient = split_gradient,
       .rule_text = "... (piece k) -> ... k, ... k; piece: whole"},
      {.name = "Concat", .operand_names = {"x..."}, .result_names = {"y"},
       .attributes = {integer("axis", 0, "along which they are joined")},
       .infer = infer_concat, .rule = concat_rule, .kernel = concat_kernel, .flops_per_point = 0, .gradient = concat_gradient,
       .rule_text = "... k, ... k -> ... (piece k); piece: whole", .notes = "unequal sizes keep the dimension whole"},
      {.name = "Stack", .operand_names = {"x..."}, .result_names = {"y"}, .attributes = {integer("axis", 0, "the new dimension")},
       .infer = infer_stack, .rule = stack_rule, .kernel = stack_kernel, .flops_per_point = 0, .gradient = stack_gradient,
       .rule_text = "..., ... -> ... whole"},
      {.name = "Slice", .operand_names = {"x"}, .result_names = {"y"},
       .attributes = {list("begin", std::nullopt, "first position in each dimension"), list("size", std::nullopt, "how many; -1: to the end")},
       .infer = infer_slice, .rule = slice_rule, .kernel = slice_kernel, .flops_per_point = 0, .gradient = slice_gradient,
       .rule_text = "dimensions taken whole pass through, others stay whole"},
      {.name = "StridedSlice", .operand_names = {"x"}, .result_names = {"y"}, .attributes = slice_attributes(empty_list()),
       .infer = infer_strided_slice, .rule = slice_rule, .kernel = slice_kernel, .flops_per_point = 0, .gradient = slice_gradient,
       .rule_text = "dimensions taken whole pass through, others stay whole"},
      {.name = "SliceGrad", .operand_names = {"dy"}, .result_names = {"dx"},
       .attributes = {list("shape", std::nullopt, "of x"), list("begin", std::nullopt, "as StridedSlice"),
                      list("end", std::nullopt, "as StridedSlice"), list("strides", empty_list(), "as StridedSlice")},
       .infer = infer_slice_grad, .rule = slice_rule, .kernel = slice_grad_kernel, .flops_per_point = 0,
       .rule_text = "dimensions taken whole pass through, others stay whole", .is_internal = true},
      {.name = "Tile", .operand_names = {"x"}, .result_names = {"y"},
       .attributes = {list("multiples", std::nullopt, "how often each dimension is repeated")},
       .infer = infer_tile, .rule = tile_rule, .kernel = tile_kernel, .flops_per_point = 0, .gradient = tile_gradient,
       .rule_text = "a ... -> (copy a) ..."},
      {.name = "BroadcastTo", .operand_names = {"x"}, .result_names = {"y"}, .attributes = {list("shape", std::nullopt, "of the result")},
       .infer = infer_broadcast_to, .rule = broadcast_to_rule, .kernel = broadcast_to_kernel, .flops_per_point = 0,
       .gradient = broadcast_to_gradient, .rule_text = "1 b -> a b"},

      // ---- indices -----------------------------------------------------------------------------------------------------
      {.name = "Gather", .operand_names = {"params", "indices"}, .result_names = {"y"},
       .attributes = {integer("axis", 0, "of params, along which indices pick")},
       .infer = infer_gather, .rule = gather_rule, .kernel = gather_kernel, .flops_per_point = 0, .gradient = gather_gradient,
       .rule_text = "v h, b -> b h; v: sum, of masked rows"},
      {.name = "GatherGrad", .operand_names = {"dy", "indices"}, .result_names = {"dparams"},
       .attributes = {integer("axis", 0, "as the forward operator's"), integer("size", std::nullopt, "of params along it")},
       .infer = infer_scatter_add, .rule = scatter_add_rule, .kernel = scatter_add_kernel, .flops_per_point = 0,
       .rule_text = "b h, b -> v h; b: sum", .is_internal = true},
      {.name = "UnsortedSegmentSum", .operand_names = {"x", "segment_ids"}, .result_names = {"y"},
       .attributes = {integer("num_segments", std::nullopt, "rows of the result")},
       .infer = infer_scatter_add, .rule = scatter_add_rule, .kernel = scatter_add_kernel, .flops_per_point = 0,
       .gradient = segment_sum_gradient, .rule_text = "b h, b -> v h; b: sum"},
      {.name = "OneHot", .operand_names = {"indices"}, .result_names = {"y"},
       .attributes = {integer("depth", std::nullopt, "size of the new dimension"), number("on_value", 1, "where the index is"),
                      number("off_value", 0, "elsewhere"), integer("axis", -1, "the new dimension"), text("dtype", "f32", "of the result")},
       .infer = infer_one_hot, .rule = one_hot_rule, .kernel = one_hot_kernel, .rule_text = "b -> b depth"},
      {.name = "Range", .operand_names = {}, .result_names = {"y"},
       .attributes = {number("start", 0, "first value"), number("limit", std::nullopt, "values stay below"),
                      number("delta", 1, "step"), text("dtype", "i32", "of the result")},
       .infer = infer_range, .rule = range_rule, .kernel = range_kernel, .rule_text = " -> a"},
      {.name = "RotaryEmbedding", .operand_names = {"x", "cos", "sin"}, .result_names = {"y"}, .infer = infer_rotary,
       .rule = rotary_rule, .kernel = rotary_kernel, .flops_per_point = 3, .gradient = rotary_gradient,
       .rule_text = "... s (half d), s (half d), s (half d) -> ... s (half d); half: whole"},
      {.name = "RotaryEmbeddingGrad", .operand_names = {"dy", "cos", "sin"}, .result_names = {"dx"}, .infer = infer_rotary,
       .rule = rotary_rule, .kernel = rotary_grad_kernel, .flops_per_point = 3,
       .rule_text = "... s (half d), s (half d), s (half d) -> ... s (half d); half: whole", .is_internal = true},
  };
  std::ranges::sort(all, {}, &OperatorType::name);
  return all;
}

}  // namespace

const std::vector<OperatorType>& operator_catalogue() {
  static const std::vector<OperatorType> catalogue = make_catalogue();
  return catalogue;
}

}  // namespace shardplan
