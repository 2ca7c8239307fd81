#include "operators/families/batch_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"

// BatchNorm is written as the phases that it runs in where a dimension of its statistics is cut: mean, share of the
// variance, normalisation, and likewise for the gradient. The whole operator is these phases one after the other, so
// that one set of kernels serves both. Statistics are sums of shares divided by the global count; a batch that is
// normalised in parts has a `part` factor in front of n.

namespace shardplan {
namespace {

/// In how many parts the batch is normalised, each by its own statistics: [parts, c], or [c] of one part.
std::int64_t num_parts(const Operation& operation) { return operation.integer("parts"); }

Shape statistics_shape(const Operation& operation) {
  const std::int64_t channels = operation.operands[0].shape[1];
  return num_parts(operation) == 1 ? Shape{channels} : Shape{num_parts(operation), channels};
}

/// What an operand or result of that name is.
enum class ChannelForm { kWhole, kVector, kStatistics };  // as x; [c]; statistics_shape

ChannelForm form_of(std::string_view name) {
  if (name == "x" || name == "y" || name == "dx" || name == "dy") return ChannelForm::kWhole;
  const bool is_vector = name == "gamma" || name == "beta" || name == "dgamma" || name == "dbeta";
  return is_vector ? ChannelForm::kVector : ChannelForm::kStatistics;
}

/// The rule of operands and results in these forms: factors n, c, h, w (then positions), and `part` before n where
/// there are several, of which a result without it is a sum.
ShardingRule channel_rule(const Operation& operation, FactorKind others, FactorKind parts = FactorKind::kPassThrough) {
  static constexpr const char* kNames[] = {"n", "c", "h", "w"};
  const Shape& shape = operation.operands[0].shape;
  RuleBuilder builder;
  TensorWalk x;
  std::optional<DimensionWalk> part;
  if (num_parts(operation) > 1) part = builder.add("part", num_parts(operation), parts);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t size = d == 0 ? shape[d] / num_parts(operation) : shape[d];
    x.push_back(builder.add(d < 4 ? kNames[d] : position_name(d), size, d == 1 ? FactorKind::kPassThrough : others));
  }
  const TensorWalk vector{x[1]};
  const TensorWalk statistics = part ? TensorWalk{*part, x[1]} : vector;
  if (part) x[0] = product(*part, x[0]);
  const auto walk_of = [&](std::string_view name) -> const TensorWalk& {
    const ChannelForm form = form_of(name);
    return form == ChannelForm::kWhole ? x : form == ChannelForm::kVector ? vector : statistics;
  };
  const Signature& signature = operation.type->signature;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) builder.operand(walk_of(signature.operands[i]));
  for (std::size_t i = 0; i < operation.results.size(); ++i) builder.result(walk_of(signature.results[i]));
  return builder.build();
}

void check_channels(const Operation& operation, const Shape& x) {
  if (x.size() < 2) operand_error(operation, fmt::format("needs an input [n, c, ...], found {}", to_string(x)));
  const std::int64_t parts = num_parts(operation);
  if (parts < 1 || x[0] % parts != 0) {
    operand_error(operation, fmt::format("parts is {}; expected a number that divides the {} rows", parts, x[0]));
  }
  for (std::size_t i = 1; i < operation.operands.size(); ++i) {
    const Shape& shape = operation.operands[i].shape;
    const ChannelForm form = form_of(operation.type->signature.operands[i]);
    const Shape wanted = form == ChannelForm::kWhole    ? x
                         : form == ChannelForm::kVector ? Shape{x[1]}
                                                        : statistics_shape(operation);
    if (shape == wanted) continue;
    operand_error(operation, fmt::format("{} is {}; expected {}", operation.type->signature.operands[i],
                                         to_string(shape), to_string(wanted)));
  }
}

TensorType statistics_type(const Operation& operation) {
  return {statistics_shape(operation), operation.operands[0].dtype};
}

/// Values per channel of one part of the whole batch.
double global_count(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  return static_cast<double>(num_elements(x) / x[1] / num_parts(operation));
}

/// Calls body(offset in x, channel, position in the statistics) for each local element. The parts' rows follow each
/// other, on a device too.
template <class Body>
void for_each_in_channels(const KernelCall& call, Body body) {
  const AroundAxis around(call.operands[0].shape, 1);
  const std::int64_t parts = num_parts(call.operation) == 1 ? 1 : call.box("part").size();
  const std::int64_t rows = std::max<std::int64_t>(1, around.outer / parts);
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t c = 0; c < around.size; ++c) {
      for (std::int64_t i = 0; i < around.inner; ++i) body(at++, c, o / rows * around.size + c);
    }
  }
}

std::vector<TensorType> infer_batch_norm(const Operation& operation) {
  check_channels(operation, operation.operands[0].shape);
  const auto& operands = operation.operands;
  if (!operation.flag("is_training")) {
    if (num_parts(operation) > 1) operand_error(operation, "parts are those of a batch that is_training normalises by");
    return {operands[0]};
  }
  return {operands[0], operands[3], operands[4], statistics_type(operation), statistics_type(operation)};
}

ShardingRule batch_norm_rule(const Operation& operation) {
  return channel_rule(operation, operation.flag("is_training") ? FactorKind::kNormalised : FactorKind::kPassThrough);
}

Phases batch_norm_phases(const Operation& operation, std::span<const std::int64_t>) {
  const Attributes parts = {{"parts", num_parts(operation)}};
  Attributes epsilon = parts;
  epsilon["epsilon"] = operation.number("epsilon");
  if (!operation.flag("is_training")) {
    return make_phases(operation, {{"y = BatchNormApply(x, gamma, beta, moving_mean, moving_variance)", epsilon}});
  }
  const double momentum = operation.number("momentum");
  const double count = global_count(operation);
  // The moving variance takes the unbiased estimate, as MindSpore and PyTorch do.
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  return make_phases(
      operation,
      {{"mean = ChannelMean(x)", parts},
       {"variance = ChannelVariance(x, mean)", parts},
       {"y = BatchNormApply(x, gamma, beta, mean, variance)", epsilon},
       {"moving_mean = MovingAverage(moving_mean, mean)", {{"momentum", momentum}, {"scale", 1.0}}},
       {"moving_variance = MovingAverage(moving_variance, variance)", {{"momentum", momentum}, {"scale", unbiased}}}});
}

std::vector<TensorType> infer_batch_norm_grad(const Operation& operation) {
  check_channels(operation, operation.operands[0].shape);
  return {operation.operands[1], operation.operands[2], operation.operands[2]};
}

ShardingRule batch_norm_grad_rule(const Operation& operation) {
  return channel_rule(operation, FactorKind::kNormalised, FactorKind::kReduction);
}

Phases batch_norm_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  const Attributes attributes = {{"epsilon", operation.number("epsilon")}, {"parts", num_parts(operation)}};
  if (num_parts(operation) == 1) {
    return make_phases(operation,
                       {{"dgamma, dbeta = BatchNormGradSums(dy, x, mean, variance)", attributes},
                        {"dx = BatchNormGradApply(dy, x, gamma, mean, variance, dgamma, dbeta)", attributes}});
  }
  return make_phases(operation,
                     {{"xhat_sum, dy_sum = BatchNormGradSums(dy, x, mean, variance)", attributes},
                      {"dx = BatchNormGradApply(dy, x, gamma, mean, variance, xhat_sum, dy_sum)", attributes},
                      {"dgamma = SumOfParts(xhat_sum)"},
                      {"dbeta = SumOfParts(dy_sum)"}});
}

/// One or two, by how many results the operator has.
std::vector<TensorType> infer_channel_statistics(const Operation& operation) {
  return std::vector<TensorType>(operation.type->signature.results.size(), statistics_type(operation));
}

std::vector<TensorType> infer_sum_of_parts(const Operation& operation) {
  return {{{operation.operands[0].shape[1]}, operation.operands[0].dtype}};
}

void sum_of_parts_kernel(const KernelCall& call) {
  const Shape& shape = call.operands[0].shape;
  for (std::int64_t i = 0; i < num_elements(shape); ++i) {
    call.results[0].data[i % shape[1]] += call.operands[0].data[i];
  }
}

/// For operands of shape [c] or [parts, c].
ShardingRule moving_average_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  RuleBuilder builder;
  TensorWalk walk;
  if (shape.size() > 1) walk.push_back(builder.add("part", shape[0]));
  walk.push_back(builder.add("c", shape.back()));
  builder.operand(walk);
  builder.operand(walk);
  builder.result(walk);
  return builder.build();
}

ShardingRule channel_statistic_rule(const Operation& operation) {
  return channel_rule(operation, FactorKind::kReduction);
}

ShardingRule channel_apply_rule(const Operation& operation) {
  return channel_rule(operation, FactorKind::kPassThrough);
}

void channel_mean_kernel(const KernelCall& call) {
  const double count = global_count(call.operation);
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t, std::int64_t s) {
    call.results[0].data[s] += call.operands[0].data[at];
  });
  for (std::int64_t s = 0; s < num_elements(call.results[0].shape); ++s) call.results[0].data[s] /= count;
}

/// (x, mean) -> the share of the biased variance.
void channel_variance_kernel(const KernelCall& call) {
  const double count = global_count(call.operation);
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t, std::int64_t s) {
    const double distance = call.operands[0].data[at] - call.operands[1].data[s];
    call.results[0].data[s] += distance * distance;
  });
  for (std::int64_t s = 0; s < num_elements(call.results[0].shape); ++s) call.results[0].data[s] /= count;
}

/// (x, gamma, beta, mean, variance).
void batch_norm_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t c, std::int64_t s) {
    const double scale = call.operands[1].data[c] / std::sqrt(call.operands[4].data[s] + epsilon);
    call.results[0].data[at] =
        (call.operands[0].data[at] - call.operands[3].data[s]) * scale + call.operands[2].data[c];
  });
}

void moving_average_kernel(const KernelCall& call) {
  const double momentum = call.operation.number("momentum");
  const double scale = call.operation.number("scale");
  for (std::int64_t s = 0; s < num_elements(call.results[0].shape); ++s) {
    call.results[0].data[s] = (1 - momentum) * call.operands[0].data[s] + momentum * scale * call.operands[1].data[s];
  }
}

/// (dy, x, mean, variance) -> each part's sums of dy * xhat and of dy; of one part dgamma and dbeta.
void batch_norm_grad_sums_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t, std::int64_t s) {
    const double dy = call.operands[0].data[at];
    const double sigma = std::sqrt(call.operands[3].data[s] + epsilon);
    call.results[0].data[s] += dy * (call.operands[1].data[at] - call.operands[2].data[s]) / sigma;
    call.results[1].data[s] += dy;
  });
}

/// (dy, x, gamma, mean, variance, a, b), the sums of a part: gamma / sigma * (dy - b / N - xhat * a / N).
void batch_norm_grad_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  const double count = global_count(call.operation);
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t c, std::int64_t s) {
    const double sigma = std::sqrt(call.operands[4].data[s] + epsilon);
    const double normalised = (call.operands[1].data[at] - call.operands[3].data[s]) / sigma;
    call.results[0].data[at] =
        call.operands[2].data[c] / sigma *
        (call.operands[0].data[at] - (call.operands[6].data[s] + normalised * call.operands[5].data[s]) / count);
  });
}

/// With given statistics: y = (x - mean) * s + beta, s = gamma / sqrt(variance + epsilon).
Gradients fixed_statistics_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  const TensorId dy = *request.result_gradients[0];
  const Shape& x = request.operation.operands[0].shape;
  Shape beside(x.size() - 1, 1);  // channels as a factor of x: [c, 1, 1]
  beside[0] = x[1];
  const TensorId epsilon = builder.constant(request.operation.number("epsilon"));
  const TensorId inverse = add_one(builder, "Rsqrt", {add_one(builder, "Add", {request.operands[4], epsilon})});
  const auto per_channel = [&](TensorId of_x) { return reshape_to(builder, sum_to(builder, of_x, beside), {x[1]}); };
  if (request.needed[0]) {
    const TensorId scale = add_one(builder, "Mul", {request.operands[1], inverse});
    gradients[0] = add_one(builder, "Mul", {dy, reshape_to(builder, scale, beside)});
  }
  if (request.needed[1]) {
    const TensorId centred =
        add_one(builder, "Sub", {request.operands[0], reshape_to(builder, request.operands[3], beside)});
    const TensorId sum = per_channel(add_one(builder, "Mul", {dy, centred}));
    gradients[1] = add_one(builder, "Mul", {sum, inverse});
  }
  if (request.needed[2]) gradients[2] = per_channel(dy);
  return gradients;
}

Gradients batch_norm_gradient(GradientBuilder& builder, const GradientRequest& request) {
  if (!request.result_gradients[0]) return no_gradients(request);
  if (!request.operation.flag("is_training")) return fixed_statistics_gradient(builder, request);
  const Attributes attributes = {{"epsilon", request.operation.number("epsilon")},
                                 {"parts", num_parts(request.operation)}};
  return needed_gradients(request, builder.add("BatchNormGrad", attributes,
                                               {*request.result_gradients[0], request.operands[0], request.operands[1],
                                                request.results[3], request.results[4]}));
}

AttributeSpec parts_attribute() {
  return integer("parts", 1, "the batch is normalised in so many parts, each by its own statistics [parts, c]");
}

/// A phase with statistics as its results.
OperatorType channel_statistic(std::string name, Signature signature, std::vector<AttributeSpec> attributes,
                               std::string rule_text, Kernel kernel) {
  attributes.push_back(parts_attribute());
  return {.name = std::move(name),
          .signature = std::move(signature),
          .attributes = std::move(attributes),
          .infer = infer_channel_statistics,
          .rule_text = std::move(rule_text),
          .rule = channel_statistic_rule,
          .kernel = kernel,
          .flops_per_point = 4,
          .is_internal = true};
}

/// A phase shaped as the first operand, with channel vectors as further operands.
OperatorType channel_apply(std::string name, Signature signature, std::string rule_text, Kernel kernel) {
  return {.name = std::move(name),
          .signature = std::move(signature),
          .attributes = {epsilon(1e-5), parts_attribute()},
          .infer = infer_like_first,
          .rule_text = std::move(rule_text),
          .rule = channel_apply_rule,
          .kernel = kernel,
          .flops_per_point = 4,
          .is_internal = true};
}

}  // namespace

std::vector<OperatorType> batch_norm_operators() {
  return {
      {.name = "BatchNorm",
       .signature = "x, gamma, beta, moving_mean, moving_variance -> y, moving_mean, moving_variance, mean, variance",
       .attributes = {flag("is_training", false, "normalise by the batch's statistics"), epsilon(1e-5),
                      number("momentum", 0.1, "share of the batch in the moving statistics"), parts_attribute()},
       .infer = infer_batch_norm,
       .rule_text = "n c ..., c, c, c, c -> n c ..., c, c, c, c; n, ...: normalised",
       .rule = batch_norm_rule,
       .phases = batch_norm_phases,
       .gradient = batch_norm_gradient,
       .flops_per_point = 8,
       .scales = {"gamma", "moving_variance"},
       .notes = "strategy  ((n, c, h, w), (c), (c), (c), (c)); statistics are of the whole batch, however it is cut,\n"
                "          or of each of its parts, in its order; in inference y is the only result and nothing is\n"
                "          normalised"},
      {.name = "BatchNormGrad",
       .signature = "dy, x, gamma, mean, variance -> dx, dgamma, dbeta",
       .attributes = {epsilon(1e-5), parts_attribute()},
       .infer = infer_batch_norm_grad,
       .rule_text = "n c ..., n c ..., c, c, c -> n c ..., c, c; n, ...: normalised",
       .rule = batch_norm_grad_rule,
       .phases = batch_norm_grad_phases,
       .flops_per_point = 12,
       .is_internal = true},
      channel_statistic("ChannelMean", "x -> mean", {}, "n c ... -> c; n, ...: sum", channel_mean_kernel),
      channel_statistic("ChannelVariance", "x, mean -> variance", {}, "n c ..., c -> c; n, ...: sum",
                        channel_variance_kernel),
      channel_apply("BatchNormApply", "x, gamma, beta, mean, variance -> y", "n c ..., c, c, c, c -> n c ...",
                    batch_norm_apply_kernel),
      {.name = "MovingAverage",
       .signature = "moving, value -> moving",
       .attributes = {number("momentum", std::nullopt, "share of the new value"),
                      number("scale", std::nullopt, "of the new value")},
       .infer = infer_like_first,
       .rule_text = "... c, ... c -> ... c",
       .rule = moving_average_rule,
       .kernel = moving_average_kernel,
       .is_internal = true},
      {.name = "SumOfParts",
       .signature = "sums -> sum",
       .infer = infer_sum_of_parts,
       .rule_text = "part c -> c; part: sum",
       .kernel = sum_of_parts_kernel,
       .is_internal = true},
      channel_statistic("BatchNormGradSums", "dy, x, mean, variance -> xhat_sum, dy_sum", {epsilon(1e-5)},
                        "n c ..., n c ..., c, c -> c, c; n, ...: sum", batch_norm_grad_sums_kernel),
      channel_apply("BatchNormGradApply", "dy, x, gamma, mean, variance, xhat_sum, dy_sum -> dx",
                    "n c ..., n c ..., c, c, c, c, c -> n c ...", batch_norm_grad_apply_kernel),
  };
}

}  // namespace shardplan
