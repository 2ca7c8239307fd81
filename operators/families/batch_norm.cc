#include "operators/families/batch_norm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"

// BatchNorm is written as the phases that it runs in if a dimension of its statistics is sharded: sums over the batch,
// the statistics, normalisation, and likewise for the gradient. The whole operator consists of these phases in
// sequence, so one set of kernels serves both. A batch that is normalised in parts has a `part` factor before n.
//
// Two sums are put into one tensor, since one collective then completes them: its start-up is nearly all of its time.
// So the variance is not computed as the mean of squared distances from the mean, which would have to be complete
// first, but from squared distances from the moving mean, minus the squared distance between the two means. Distances
// from 0, as in other frameworks, would lose more digits.

namespace shardplan {
namespace {

/// The shape of statistics by the number of parts that are normalised separately: [parts, c], or [c] for one part.
std::int64_t num_parts(const Operation& operation) { return operation.integer("parts"); }

Shape statistics_shape(const Operation& operation) {
  const std::int64_t channels = operation.operands[0].shape[1];
  return num_parts(operation) == 1 ? Shape{channels} : Shape{num_parts(operation), channels};
}

/// What an operand or result of that name is.
enum class ChannelForm { kWhole, kVector, kStatistics, kPair };  // as x; [c]; statistics_shape; two of them in one

ChannelForm form_of(std::string_view name) {
  if (name == "x" || name == "y" || name == "dx" || name == "dy") return ChannelForm::kWhole;
  if (name == "moments" || name == "sums") return ChannelForm::kPair;
  const bool is_vector = name == "gamma" || name == "beta" || name == "dgamma" || name == "dbeta";
  return is_vector ? ChannelForm::kVector : ChannelForm::kStatistics;
}

Shape pair_shape(Shape statistics) {
  statistics.insert(statistics.begin(), 2);
  return statistics;
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
  const TensorWalk pair = concatenate({whole()}, statistics);
  if (part) x[0] = product(*part, x[0]);
  const auto walk_of = [&](std::string_view name) -> const TensorWalk& {
    switch (form_of(name)) {
      case ChannelForm::kWhole:
        return x;
      case ChannelForm::kVector:
        return vector;
      case ChannelForm::kStatistics:
        return statistics;
      case ChannelForm::kPair:
        return pair;
    }
    return x;
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
                         : form == ChannelForm::kPair   ? pair_shape(statistics_shape(operation))
                                                        : statistics_shape(operation);
    if (shape == wanted) continue;
    operand_error(operation, fmt::format("{} is {}; expected {}", operation.type->signature.operands[i],
                                         to_string(shape), to_string(wanted)));
  }
}

/// Statistics are as wide as those that are given, the last operand, also where x has two bytes.
TensorType statistics_type(const Operation& operation) {
  return {statistics_shape(operation), operation.operands.back().dtype};
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
  return make_phases(operation, {{"moments = ChannelMoments(x, moving_mean)", parts},
                                 {"mean, variance, moving_mean, moving_variance = "
                                  "ChannelStatistics(moments, moving_mean, moving_variance)",
                                  {{"momentum", momentum}, {"unbiased", unbiased}}},
                                 {"y = BatchNormApply(x, gamma, beta, mean, variance)", epsilon}});
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
  return make_phases(operation, {{"sums = BatchNormGradSums(dy, x, mean, variance)", attributes},
                                 {"dx = BatchNormGradApply(dy, x, gamma, mean, variance, sums)", attributes},
                                 {"dgamma, dbeta = SumsOfParts(sums)"}});
}

/// A pair of statistics.
std::vector<TensorType> infer_channel_pair(const Operation& operation) {
  return {{pair_shape(statistics_shape(operation)), statistics_type(operation).dtype}};
}

/// Of operands or results with statistics, as a pair or not: factors part, where there are several, and c.
ShardingRule statistics_rule(const Operation& operation, FactorKind parts) {
  const Shape& pair = operation.operands[0].shape;  // [2, c] or [2, parts, c]
  RuleBuilder builder;
  TensorWalk statistics;
  if (pair.size() > 2) statistics.push_back(builder.add("part", pair[1], parts));
  statistics.push_back(builder.add("c", pair.back()));
  const TensorWalk vector{statistics.back()};
  builder.operand(concatenate({whole()}, statistics));
  for (std::size_t i = 1; i < operation.operands.size(); ++i) builder.operand(statistics);
  for (const std::string_view result : operation.type->signature.results) {
    builder.result(form_of(result) == ChannelForm::kVector ? vector : statistics);
  }
  return builder.build();
}

/// Mean, variance and the moving ones.
std::vector<TensorType> infer_channel_statistics(const Operation& operation) {
  return std::vector<TensorType>(4, operation.operands[1]);
}

ShardingRule channel_statistics_rule(const Operation& operation) {
  return statistics_rule(operation, FactorKind::kPassThrough);
}

std::vector<TensorType> infer_sums_of_parts(const Operation& operation) {
  return std::vector<TensorType>(2, {{operation.operands[0].shape.back()}, operation.operands[0].dtype});
}

ShardingRule sums_of_parts_rule(const Operation& operation) {
  return statistics_rule(operation, FactorKind::kReduction);
}

void sums_of_parts_kernel(const KernelCall& call) {
  const Shape& pair = call.operands[0].shape;
  const std::int64_t size = num_elements(pair) / 2;
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::int64_t i = 0; i < size; ++i) {
      call.results[half].data[i % pair.back()] += call.operands[0].data[static_cast<std::int64_t>(half) * size + i];
    }
  }
}

ShardingRule channel_pair_rule(const Operation& operation) { return channel_rule(operation, FactorKind::kReduction); }

ShardingRule channel_apply_rule(const Operation& operation) {
  return channel_rule(operation, FactorKind::kPassThrough);
}

/// (x, moving mean) -> the shares of the means of distances from the moving mean, and of their squares: those from the mean
/// of what is here and that one's, which rounds less (Chan, Golub, LeVeque, COMPSTAT 1982).
void channel_moments_kernel(const KernelCall& call) {
  double* const moments = call.results[0].data;
  const std::int64_t size = num_elements(call.results[0].shape) / 2;
  const auto here = static_cast<double>(num_elements(call.operands[0].shape) / size);
  const double share = here / global_count(call.operation);
  const auto distance = [&](std::int64_t at, std::int64_t s) {
    return call.operands[0].data[at] - call.operands[1].data[s];
  };
  for_each_in_channels(call,
                       [&](std::int64_t at, std::int64_t, std::int64_t s) { moments[s] += distance(at, s) / here; });
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t, std::int64_t s) {
    const double from_mean = distance(at, s) - moments[s];
    moments[size + s] += from_mean * from_mean / here;
  });
  for (std::int64_t s = 0; s < size; ++s) {
    moments[size + s] = share * (moments[size + s] + moments[s] * moments[s]);
    moments[s] *= share;
  }
}

/// (moments, moving mean, moving variance) -> mean, biased variance, and the moving ones with a share of them.
void channel_statistics_kernel(const KernelCall& call) {
  const double momentum = call.operation.number("momentum");
  const double unbiased = call.operation.number("unbiased");
  const std::int64_t size = num_elements(call.operands[1].shape);
  for (std::int64_t s = 0; s < size; ++s) {
    const double distance = call.operands[0].data[s];
    const double mean = call.operands[1].data[s] + distance;
    const double variance = std::max(0.0, call.operands[0].data[size + s] - distance * distance);
    call.results[0].data[s] = mean;
    call.results[1].data[s] = variance;
    call.results[2].data[s] = (1 - momentum) * call.operands[1].data[s] + momentum * mean;
    call.results[3].data[s] = (1 - momentum) * call.operands[2].data[s] + momentum * unbiased * variance;
  }
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

/// (dy, x, mean, variance) -> each part's sums of dy * xhat and of dy.
void batch_norm_grad_sums_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  const std::int64_t size = num_elements(call.results[0].shape) / 2;
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t, std::int64_t s) {
    const double dy = call.operands[0].data[at];
    const double sigma = std::sqrt(call.operands[3].data[s] + epsilon);
    call.results[0].data[s] += dy * (call.operands[1].data[at] - call.operands[2].data[s]) / sigma;
    call.results[0].data[size + s] += dy;
  });
}

/// (dy, x, gamma, mean, variance, a and b), the sums of a part: gamma / sigma * (dy - b / N - xhat * a / N).
void batch_norm_grad_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  const double count = global_count(call.operation);
  const std::int64_t size = num_elements(call.operands[5].shape) / 2;
  for_each_in_channels(call, [&](std::int64_t at, std::int64_t c, std::int64_t s) {
    const double sigma = std::sqrt(call.operands[4].data[s] + epsilon);
    const double normalised = (call.operands[1].data[at] - call.operands[3].data[s]) / sigma;
    call.results[0].data[at] =
        call.operands[2].data[c] / sigma *
        (call.operands[0].data[at] - (call.operands[5].data[size + s] + normalised * call.operands[5].data[s]) / count);
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

/// A phase with a pair of statistics as its result.
OperatorType channel_pair(std::string name, Signature signature, std::vector<AttributeSpec> attributes,
                          std::string rule_text, Kernel kernel) {
  attributes.push_back(parts_attribute());
  return {.name = std::move(name),
          .signature = std::move(signature),
          .attributes = std::move(attributes),
          .infer = infer_channel_pair,
          .rule_text = std::move(rule_text),
          .rule = channel_pair_rule,
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
       .reads_twice = true,
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
       .reads_twice = true,
       .is_internal = true},
      channel_pair("ChannelMoments", "x, moving_mean -> moments", {}, "n c ..., c -> pair c; n, ...: sum; pair: whole",
                   channel_moments_kernel),
      {.name = "ChannelStatistics",
       .signature = "moments, moving_mean, moving_variance -> mean, variance, moving_mean, moving_variance",
       .attributes = {number("momentum", std::nullopt, "share of the batch in the moving statistics"),
                      number("unbiased", std::nullopt, "times the variance: the unbiased estimate")},
       .infer = infer_channel_statistics,
       .rule_text = "pair c, c, c -> c, c, c, c; pair: whole",
       .rule = channel_statistics_rule,
       .kernel = channel_statistics_kernel,
       .is_internal = true},
      channel_apply("BatchNormApply", "x, gamma, beta, mean, variance -> y", "n c ..., c, c, c, c -> n c ...",
                    batch_norm_apply_kernel),
      channel_pair("BatchNormGradSums", "dy, x, mean, variance -> sums", {epsilon(1e-5)},
                   "n c ..., n c ..., c, c -> pair c; n, ...: sum; pair: whole", batch_norm_grad_sums_kernel),
      channel_apply("BatchNormGradApply", "dy, x, gamma, mean, variance, sums -> dx",
                    "n c ..., n c ..., c, c, c, pair c -> n c ...; pair: whole", batch_norm_grad_apply_kernel),
      {.name = "SumsOfParts",
       .signature = "sums -> dgamma, dbeta",
       .infer = infer_sums_of_parts,
       .rule_text = "pair part c -> c, c; part: sum; pair: whole",
       .rule = sums_of_parts_rule,
       .kernel = sums_of_parts_kernel,
       .is_internal = true},
  };
}

}  // namespace shardplan
