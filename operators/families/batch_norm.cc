#include "operators/families/batch_norm.h"

#include <fmt/format.h>

#include <cmath>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"

namespace shardplan {
namespace {

/// Factors n, c, h, w (then positions), the channels first of all as `c`.
TensorWalk channel_walk(RuleBuilder& builder, const Shape& shape, FactorKind others) {
  static constexpr const char* kNames[] = {"n", "c", "h", "w"};
  TensorWalk walk;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    walk.push_back(
        builder.add(d < 4 ? kNames[d] : position_name(d), shape[d], d == 1 ? FactorKind::kPassThrough : others));
  }
  return walk;
}

/// The rule of operands and results that are either shaped as x or vectors of channels.
ShardingRule channel_rule(const Operation& operation, FactorKind others) {
  RuleBuilder builder;
  const TensorWalk x = channel_walk(builder, operation.operands[0].shape, others);
  for (const TensorType& operand : operation.operands)
    builder.operand(operand.shape.size() == 1 ? TensorWalk{x[1]} : x);
  for (const TensorType& result : operation.results) builder.result(result.shape.size() == 1 ? TensorWalk{x[1]} : x);
  return builder.build();
}

void check_channels(const Operation& operation, const Shape& x) {
  if (x.size() < 2) operand_error(operation, fmt::format("needs an input [n, c, ...], found {}", to_string(x)));
  for (std::size_t i = 1; i < operation.operands.size(); ++i) {
    const Shape& shape = operation.operands[i].shape;
    if (shape == x || shape == Shape{x[1]}) continue;
    operand_error(operation, fmt::format("{} is {}; expected [{}]", operation.type->signature.operands[i],
                                         to_string(shape), x[1]));
  }
}

TensorType channel_type(const Operation& operation) {
  return {{operation.operands[0].shape[1]}, operation.operands[0].dtype};
}

/// Values per channel of the whole batch.
double global_count(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  return static_cast<double>(num_elements(x) / x[1]);
}

/// Calls body(offset in x, channel) for each local element.
template <class Body>
void for_each_in_channels(const KernelCall& call, Body body) {
  const AroundAxis around(call.operands[0].shape, 1);
  std::int64_t at = 0;
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t c = 0; c < around.size; ++c) {
      for (std::int64_t i = 0; i < around.inner; ++i) body(at++, c);
    }
  }
}

std::vector<TensorType> infer_batch_norm(const Operation& operation) {
  check_channels(operation, operation.operands[0].shape);
  const auto& operands = operation.operands;
  if (!operation.flag("is_training")) return {operands[0]};
  return {operands[0], operands[3], operands[4], channel_type(operation), channel_type(operation)};
}

ShardingRule batch_norm_rule(const Operation& operation) {
  return channel_rule(operation, operation.flag("is_training") ? FactorKind::kNormalised : FactorKind::kPassThrough);
}

Phases batch_norm_phases(const Operation& operation, std::span<const std::int64_t>) {
  const Attributes epsilon = {{"epsilon", operation.number("epsilon")}};
  if (!operation.flag("is_training")) {
    return make_phases(operation, {{"y = BatchNormApply(x, gamma, beta, moving_mean, moving_variance)", epsilon}});
  }
  const double momentum = operation.number("momentum");
  const double count = global_count(operation);
  // The moving variance takes the unbiased estimate, as MindSpore and PyTorch do.
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  return make_phases(
      operation,
      {{"mean = ChannelMean(x)"},
       {"variance = ChannelVariance(x, mean)"},
       {"y = BatchNormApply(x, gamma, beta, mean, variance)", epsilon},
       {"moving_mean = MovingAverage(moving_mean, mean)", {{"momentum", momentum}, {"scale", 1.0}}},
       {"moving_variance = MovingAverage(moving_variance, variance)", {{"momentum", momentum}, {"scale", unbiased}}}});
}

std::vector<TensorType> infer_batch_norm_grad(const Operation& operation) {
  check_channels(operation, operation.operands[0].shape);
  return {operation.operands[1], operation.operands[2], operation.operands[2]};
}

ShardingRule batch_norm_grad_rule(const Operation& operation) {
  return channel_rule(operation, FactorKind::kNormalised);
}

Phases batch_norm_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  const Attributes epsilon = {{"epsilon", operation.number("epsilon")}};
  return make_phases(operation, {{"dgamma, dbeta = BatchNormGradSums(dy, x, mean, variance)", epsilon},
                                 {"dx = BatchNormGradApply(dy, x, gamma, mean, variance, dgamma, dbeta)", epsilon}});
}

/// One or two, by how many results the operator has.
std::vector<TensorType> infer_channel_statistics(const Operation& operation) {
  return std::vector<TensorType>(operation.type->signature.results.size(), channel_type(operation));
}

ShardingRule channel_statistic_rule(const Operation& operation) {
  return channel_rule(operation, FactorKind::kReduction);
}

ShardingRule channel_apply_rule(const Operation& operation) {
  return channel_rule(operation, FactorKind::kPassThrough);
}

void channel_mean_kernel(const KernelCall& call) {
  const double count = global_count(call.operation);
  for_each_in_channels(call,
                       [&](std::int64_t at, std::int64_t c) { call.results[0].data[c] += call.operands[0].data[at]; });
  for (std::int64_t c = 0; c < call.results[0].shape[0]; ++c) call.results[0].data[c] /= count;
}

/// (x, mean) -> the share of the biased variance.
void channel_variance_kernel(const KernelCall& call) {
  const double count = global_count(call.operation);
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t c) {
    const double distance = call.operands[0].data[at] - call.operands[1].data[c];
    call.results[0].data[c] += distance * distance;
  });
  for (std::int64_t c = 0; c < call.results[0].shape[0]; ++c) call.results[0].data[c] /= count;
}

/// (x, gamma, beta, mean, variance).
void batch_norm_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t c) {
    const double scale = call.operands[1].data[c] / std::sqrt(call.operands[4].data[c] + epsilon);
    call.results[0].data[at] =
        (call.operands[0].data[at] - call.operands[3].data[c]) * scale + call.operands[2].data[c];
  });
}

void moving_average_kernel(const KernelCall& call) {
  const double momentum = call.operation.number("momentum");
  const double scale = call.operation.number("scale");
  for (std::int64_t c = 0; c < call.results[0].shape[0]; ++c) {
    call.results[0].data[c] = (1 - momentum) * call.operands[0].data[c] + momentum * scale * call.operands[1].data[c];
  }
}

/// (dy, x, mean, variance) -> the sums of dy * xhat and of dy: dgamma and dbeta.
void batch_norm_grad_sums_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t c) {
    const double dy = call.operands[0].data[at];
    const double sigma = std::sqrt(call.operands[3].data[c] + epsilon);
    call.results[0].data[c] += dy * (call.operands[1].data[at] - call.operands[2].data[c]) / sigma;
    call.results[1].data[c] += dy;
  });
}

/// (dy, x, gamma, mean, variance, dgamma, dbeta) -> gamma / sigma * (dy - dbeta / N - xhat * dgamma / N).
void batch_norm_grad_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  const double count = global_count(call.operation);
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t c) {
    const double sigma = std::sqrt(call.operands[4].data[c] + epsilon);
    const double normalised = (call.operands[1].data[at] - call.operands[3].data[c]) / sigma;
    call.results[0].data[at] =
        call.operands[2].data[c] / sigma *
        (call.operands[0].data[at] - (call.operands[6].data[c] + normalised * call.operands[5].data[c]) / count);
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
  return needed_gradients(request, builder.add("BatchNormGrad", {{"epsilon", request.operation.number("epsilon")}},
                                               {*request.result_gradients[0], request.operands[0], request.operands[1],
                                                request.results[3], request.results[4]}));
}

/// A phase with channel vectors as its results.
OperatorType channel_statistic(std::string name, Signature signature, std::vector<AttributeSpec> attributes,
                               std::string rule_text, Kernel kernel) {
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
          .attributes = {epsilon(1e-5)},
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
                      number("momentum", 0.1, "share of the batch in the moving statistics")},
       .infer = infer_batch_norm,
       .rule_text = "n c ..., c, c, c, c -> n c ..., c, c, c, c; n, ...: normalised",
       .rule = batch_norm_rule,
       .phases = batch_norm_phases,
       .gradient = batch_norm_gradient,
       .flops_per_point = 8,
       .scales = {"gamma", "moving_variance"},
       .notes = "strategy  ((n, c, h, w), (c), (c), (c), (c)); statistics are of the whole batch, however it is cut;\n"
                "          in inference y is the only result and nothing is normalised"},
      {.name = "BatchNormGrad",
       .signature = "dy, x, gamma, mean, variance -> dx, dgamma, dbeta",
       .attributes = {epsilon(1e-5)},
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
       .rule_text = "c, c -> c",
       .kernel = moving_average_kernel,
       .is_internal = true},
      channel_statistic("BatchNormGradSums", "dy, x, mean, variance -> dgamma, dbeta", {epsilon(1e-5)},
                        "n c ..., n c ..., c, c -> c, c; n, ...: sum", batch_norm_grad_sums_kernel),
      channel_apply("BatchNormGradApply", "dy, x, gamma, mean, variance, dgamma, dbeta -> dx",
                    "n c ..., n c ..., c, c, c, c, c -> n c ...", batch_norm_grad_apply_kernel),
  };
}

}  // namespace shardplan
