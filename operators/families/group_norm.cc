// The dimension of the channels walks two factors, (g c): groups are sharded freely, channels of a group only in
// phases. The gradient first sums over positions, by sample and channel [n, c]; both the gradients of the parameters
// (sums over n) and the two means that dx needs (weighted sums over a group's c) are computed from these, so x is read
// once for all.
#include "operators/families/group_norm.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

/// InstanceNorm has no attribute: every channel is a group.
std::int64_t groups_of(const Operation& operation, const Shape& x) {
  return operation.attributes.contains("num_groups") ? operation.integer("num_groups") : x[1];
}

/// Factors n, g, c, then positions; how tensors of the family walk them.
struct GroupWalks {
  DimensionWalk n, g, c;
  TensorWalk x;  // n (g c) ...

  GroupWalks(RuleBuilder& builder, const Shape& shape, std::int64_t groups, FactorKind channels, FactorKind positions)
      : n(builder.add("n", shape[0])),
        g(builder.add("g", groups)),
        c(shape[1] == groups ? whole() : builder.add("c", shape[1] / groups, channels)),
        x({n, product(g, c)}) {
    for (std::size_t d = 2; d < shape.size(); ++d) {
      const std::string name = d == 2 ? "h" : d == 3 ? "w" : fmt::format("s{}", d);
      x.push_back(builder.add(name, shape[d], positions));
    }
  }

  TensorWalk parameter() const { return {x[1]}; }       // [c]
  TensorWalk of_channels() const { return {n, x[1]}; }  // [n, c]
  TensorWalk of_groups() const { return {n, g}; }       // [n, num_groups]
};

/// Calls body(offset in x, offset in [n, c], channel, offset in [n, num_groups]) for each local element.
template <class Body>
void for_each_grouped(const KernelCall& call, const Shape& x, Body body) {
  const std::int64_t channels = x[1];
  const std::int64_t groups = call.box("g").size();
  const std::int64_t positions = num_elements(x) / (x[0] * channels);
  std::int64_t at = 0;
  for (std::int64_t row = 0; row < x[0] * channels; ++row) {
    const std::int64_t group = row / channels * groups + row % channels / (channels / groups);
    for (std::int64_t i = 0; i < positions; ++i) body(at++, row, row % channels, group);
  }
}

/// Values of the whole batch in one group of one sample.
double group_count(const Shape& x, std::int64_t groups) {
  return static_cast<double>(num_elements(x) / (x[0] * groups));
}

// ---- forward: x, gamma, beta

std::vector<TensorType> infer_group_norm(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  if (x.size() < 2) operand_error(operation, fmt::format("needs an input [n, c, ...], found {}", to_string(x)));
  const std::int64_t groups = groups_of(operation, x);
  if (groups < 1 || x[1] % groups != 0) {
    operand_error(operation, fmt::format("num_groups is {}; expected a divisor of the {} channels", groups, x[1]));
  }
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (operation.operands[i].shape == Shape{x[1]}) continue;
    operand_error(operation, fmt::format("{} is {}; expected [{}]", operation.type->signature.operands[i],
                                         to_string(operation.operands[i].shape), x[1]));
  }
  return {operation.operands[0]};
}

ShardingRule group_norm_rule(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  RuleBuilder builder;
  const GroupWalks walks(builder, x, groups_of(operation, x), FactorKind::kNormalised, FactorKind::kNormalised);
  builder.operand(walks.x);
  builder.operand(walks.parameter());
  builder.operand(walks.parameter());
  builder.result(walks.x);
  return builder.build();
}

Attributes with_groups(const Operation& operation) {
  return {{"num_groups", groups_of(operation, operation.operands[0].shape)}};
}

Attributes with_groups_and_epsilon(const Operation& operation) {
  Attributes attributes = with_groups(operation);
  attributes["epsilon"] = operation.number("epsilon");
  return attributes;
}

Phases group_norm_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation,
                     {{"mean = GroupMean(x)", with_groups(operation)},
                      {"variance = GroupVariance(x, mean)", with_groups(operation)},
                      {"y = GroupNormApply(x, gamma, beta, mean, variance)", with_groups_and_epsilon(operation)}});
}

/// The sums over n are ordinary reductions after the operator: partial if the batch is sharded.
Gradients group_norm_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  const bool is_needed = request.needed[0] || request.needed[1] || request.needed[2];
  if (!request.result_gradients[0] || !is_needed) return gradients;
  const std::vector<TensorId> all =
      builder.add("GroupNormGrad", with_groups_and_epsilon(request.operation),
                  {*request.result_gradients[0], request.operands[0], request.operands[1]});
  if (request.needed[0]) gradients[0] = all[0];
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (request.needed[i]) gradients[i] = add_one(builder, "ReduceSum", {all[i]}, {{"axis", std::int64_t{0}}});
  }
  return gradients;
}

/// Phases in the order of their operands: first what is shaped as x, then parameters [c], then [n, c], then
/// [n, num_groups].
struct PhaseShape {
  std::size_t of_x = 0;
  std::size_t parameters = 0;
  std::size_t of_channels = 0;
  std::size_t of_groups = 0;
};

template <PhaseShape shape>
void add_operands(RuleBuilder& builder, const GroupWalks& walks) {
  for (std::size_t i = 0; i < shape.of_x; ++i) builder.operand(walks.x);
  for (std::size_t i = 0; i < shape.parameters; ++i) builder.operand(walks.parameter());
  for (std::size_t i = 0; i < shape.of_channels; ++i) builder.operand(walks.of_channels());
  for (std::size_t i = 0; i < shape.of_groups; ++i) builder.operand(walks.of_groups());
}

TensorType group_type(const Operation& operation, std::int64_t samples) {
  return {{samples, operation.integer("num_groups")}, operation.operands[0].dtype};
}

/// A sum over a group: [n, num_groups].
std::vector<TensorType> infer_group_statistic(const Operation& operation) {
  return {group_type(operation, operation.operands[0].shape[0])};
}

template <PhaseShape shape>
ShardingRule group_statistic_rule(const Operation& operation) {
  RuleBuilder builder;
  const GroupWalks walks(builder, operation.operands[0].shape, operation.integer("num_groups"), FactorKind::kReduction,
                         FactorKind::kReduction);
  add_operands<shape>(builder, walks);
  builder.result(walks.of_groups());
  return builder.build();
}

/// An elementwise phase with everything broadcast to x.
std::vector<TensorType> infer_like_x(const Operation& operation) { return {operation.operands[0]}; }

template <PhaseShape shape>
ShardingRule apply_rule(const Operation& operation) {
  RuleBuilder builder;
  const GroupWalks walks(builder, operation.operands[0].shape, operation.integer("num_groups"),
                         FactorKind::kPassThrough, FactorKind::kPassThrough);
  add_operands<shape>(builder, walks);
  builder.result(walks.x);
  return builder.build();
}

void group_mean_kernel(const KernelCall& call) {
  const double count = group_count(call.operation.operands[0].shape, call.operation.integer("num_groups"));
  for_each_grouped(call, call.operands[0].shape, [&](std::int64_t at, std::int64_t, std::int64_t, std::int64_t group) {
    call.results[0].data[group] += call.operands[0].data[at] / count;
  });
}

void group_variance_kernel(const KernelCall& call) {
  const double count = group_count(call.operation.operands[0].shape, call.operation.integer("num_groups"));
  for_each_grouped(call, call.operands[0].shape, [&](std::int64_t at, std::int64_t, std::int64_t, std::int64_t group) {
    const double distance = call.operands[0].data[at] - call.operands[1].data[group];
    call.results[0].data[group] += distance * distance / count;
  });
}

/// (x, gamma, beta, mean, variance).
void group_norm_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  for_each_grouped(
      call, call.operands[0].shape, [&](std::int64_t at, std::int64_t, std::int64_t channel, std::int64_t group) {
        const double sigma = std::sqrt(call.operands[4].data[group] + epsilon);
        call.results[0].data[at] =
            (call.operands[0].data[at] - call.operands[3].data[group]) / sigma * call.operands[1].data[channel] +
            call.operands[2].data[channel];
      });
}

// ---- gradient: dy, x, gamma -> dx, and dgamma and dbeta of each sample

std::vector<TensorType> infer_group_norm_grad(const Operation& operation) {
  const TensorType& x = operation.operands[1];
  const TensorType of_channels = {{x.shape[0], x.shape[1]}, x.dtype};
  return {x, of_channels, of_channels};
}

ShardingRule group_norm_grad_rule(const Operation& operation) {
  RuleBuilder builder;
  const GroupWalks walks(builder, operation.operands[0].shape, operation.integer("num_groups"), FactorKind::kNormalised,
                         FactorKind::kNormalised);
  builder.operand(walks.x);
  builder.operand(walks.x);
  builder.operand(walks.parameter());
  builder.result(walks.x);
  builder.result(walks.of_channels());
  builder.result(walks.of_channels());
  return builder.build();
}

Phases group_norm_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  const Attributes groups = with_groups(operation);
  const Attributes all = with_groups_and_epsilon(operation);
  Attributes means = groups;
  means["count"] = group_count(operation.operands[0].shape, operation.integer("num_groups"));
  return make_phases(operation, {{"mean = GroupMean(x)", groups},
                                 {"variance = GroupVariance(x, mean)", groups},
                                 {"dgamma, dbeta = GroupNormGradSums(dy, x, mean, variance)", all},
                                 {"m1, m2 = GroupNormGradMeans(gamma, dgamma, dbeta)", means},
                                 {"dx = GroupNormGradApply(dy, x, gamma, mean, variance, m1, m2)", all}});
}

std::vector<TensorType> infer_grad_sums(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  return std::vector<TensorType>(2, {{x.shape[0], x.shape[1]}, x.dtype});
}

ShardingRule grad_sums_rule(const Operation& operation) {
  RuleBuilder builder;
  const GroupWalks walks(builder, operation.operands[0].shape, operation.integer("num_groups"),
                         FactorKind::kPassThrough, FactorKind::kReduction);
  add_operands<PhaseShape{.of_x = 2, .of_groups = 2}>(builder, walks);
  builder.result(walks.of_channels());
  builder.result(walks.of_channels());
  return builder.build();
}

/// (dy, x, mean, variance) -> by sample and channel the sums of dy * xhat and of dy; xhat is the normalised x.
void grad_sums_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  for_each_grouped(
      call, call.operands[0].shape, [&](std::int64_t at, std::int64_t row, std::int64_t, std::int64_t group) {
        const double sigma = std::sqrt(call.operands[3].data[group] + epsilon);
        const double dy = call.operands[0].data[at];
        call.results[0].data[row] += dy * (call.operands[1].data[at] - call.operands[2].data[group]) / sigma;
        call.results[1].data[row] += dy;
      });
}

std::vector<TensorType> infer_grad_means(const Operation& operation) {
  return std::vector<TensorType>(2, group_type(operation, operation.operands[1].shape[0]));
}

ShardingRule grad_means_rule(const Operation& operation) {
  RuleBuilder builder;
  const GroupWalks walks(builder, operation.operands[1].shape, operation.integer("num_groups"), FactorKind::kReduction,
                         FactorKind::kReduction);
  add_operands<PhaseShape{.parameters = 1, .of_channels = 2}>(builder, walks);
  builder.result(walks.of_groups());
  builder.result(walks.of_groups());
  return builder.build();
}

/// (gamma, dgamma, dbeta) -> the group's means of dy * gamma and of dy * gamma * xhat.
void grad_means_kernel(const KernelCall& call) {
  const double count = call.operation.number("count");
  for_each_grouped(call, call.operands[1].shape,
                   [&](std::int64_t at, std::int64_t, std::int64_t channel, std::int64_t group) {
                     const double gamma = call.operands[0].data[channel] / count;
                     call.results[0].data[group] += gamma * call.operands[2].data[at];
                     call.results[1].data[group] += gamma * call.operands[1].data[at];
                   });
}

/// (dy, x, gamma, mean, variance, m1, m2) -> (dy * gamma - m1 - xhat * m2) / sigma.
void grad_apply_kernel(const KernelCall& call) {
  const double epsilon = call.operation.number("epsilon");
  for_each_grouped(call, call.operands[0].shape,
                   [&](std::int64_t at, std::int64_t, std::int64_t channel, std::int64_t group) {
                     const double sigma = std::sqrt(call.operands[4].data[group] + epsilon);
                     const double xhat = (call.operands[1].data[at] - call.operands[3].data[group]) / sigma;
                     call.results[0].data[at] = (call.operands[0].data[at] * call.operands[2].data[channel] -
                                                 call.operands[5].data[group] - xhat * call.operands[6].data[group]) /
                                                sigma;
                   });
}

AttributeSpec num_groups() { return integer("num_groups", std::nullopt, "of neighbouring channels"); }

OperatorType norm(std::string name, std::vector<AttributeSpec> attributes, std::string rule_text) {
  return {.name = std::move(name),
          .signature = "x, gamma, beta -> y",
          .attributes = std::move(attributes),
          .infer = infer_group_norm,
          .rule_text = std::move(rule_text),
          .rule = group_norm_rule,
          .phases = group_norm_phases,
          .gradient = group_norm_gradient,
          .flops_per_point = 8,
          .scales = {"gamma"},
          .reads_twice = true};
}

OperatorType phase(OperatorType type, double flops) {
  type.flops_per_point = flops;
  type.is_internal = true;
  return type;
}

}  // namespace

std::vector<OperatorType> group_norm_operators() {
  return {
      norm("GroupNorm", {num_groups(), epsilon(1e-5)}, "n (g c) ..., (g c), (g c) -> n (g c) ...; c, ...: normalised"),
      norm("InstanceNorm", {epsilon(1e-5)}, "n c ..., c, c -> n c ...; ...: normalised"),
      {.name = "GroupNormGrad",
       .signature = "dy, x, gamma -> dx, dgamma, dbeta",
       .attributes = {num_groups(), epsilon(1e-5)},
       .infer = infer_group_norm_grad,
       .rule_text = "n (g c) ..., n (g c) ..., (g c) -> n (g c) ..., n (g c), n (g c); c, ...: normalised",
       .rule = group_norm_grad_rule,
       .phases = group_norm_grad_phases,
       .flops_per_point = 16,
       .reads_twice = true,
       .is_internal = true},
      phase({.name = "GroupMean",
             .signature = "x -> mean",
             .attributes = {num_groups()},
             .infer = infer_group_statistic,
             .rule_text = "n (g c) ... -> n g; c, ...: sum",
             .rule = group_statistic_rule<PhaseShape{.of_x = 1}>,
             .kernel = group_mean_kernel},
            1),
      phase({.name = "GroupVariance",
             .signature = "x, mean -> variance",
             .attributes = {num_groups()},
             .infer = infer_group_statistic,
             .rule_text = "n (g c) ..., n g -> n g; c, ...: sum",
             .rule = group_statistic_rule<PhaseShape{.of_x = 1, .of_groups = 1}>,
             .kernel = group_variance_kernel},
            3),
      phase({.name = "GroupNormApply",
             .signature = "x, gamma, beta, mean, variance -> y",
             .attributes = {num_groups(), epsilon(1e-5)},
             .infer = infer_like_x,
             .rule_text = "n (g c) ..., (g c), (g c), n g, n g -> n (g c) ...",
             .rule = apply_rule<PhaseShape{.of_x = 1, .parameters = 2, .of_groups = 2}>,
             .kernel = group_norm_apply_kernel},
            4),
      phase({.name = "GroupNormGradSums",
             .signature = "dy, x, mean, variance -> dgamma, dbeta",
             .attributes = {num_groups(), epsilon(1e-5)},
             .infer = infer_grad_sums,
             .rule_text = "n (g c) ..., n (g c) ..., n g, n g -> n (g c), n (g c); ...: sum",
             .rule = grad_sums_rule,
             .kernel = grad_sums_kernel},
            5),
      phase({.name = "GroupNormGradMeans",
             .signature = "gamma, dgamma, dbeta -> m1, m2",
             .attributes = {num_groups(), number("count", std::nullopt, "values in a group")},
             .infer = infer_grad_means,
             .rule_text = "(g c), n (g c), n (g c) -> n g, n g; c: sum",
             .rule = grad_means_rule,
             .kernel = grad_means_kernel},
            4),
      phase({.name = "GroupNormGradApply",
             .signature = "dy, x, gamma, mean, variance, m1, m2 -> dx",
             .attributes = {num_groups(), epsilon(1e-5)},
             .infer = infer_like_x,
             .rule_text = "n (g c) ..., n (g c) ..., (g c), n g, n g, n g, n g -> n (g c) ...",
             .rule = apply_rule<PhaseShape{.of_x = 2, .parameters = 1, .of_groups = 4}>,
             .kernel = grad_apply_kernel},
            6),
  };
}

}  // namespace shardplan
