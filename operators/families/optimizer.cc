#include "operators/families/optimizer.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "operators/building/adam.h"
#include "operators/building/attributes.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

std::vector<TensorType> infer_update(const Operation& operation) {
  const TensorType& parameter = operation.operands[0];
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const SharedShape wanted = is_step(operation, i) ? SharedShape() : parameter.shape;
    if (operation.operands[i].shape == wanted) continue;
    operand_error(operation, fmt::format("{} is {}; expected {}", operation.type->signature.operands[i],
                                         to_string(operation.operands[i].shape), to_string(wanted)));
  }
  return {operation.operands.begin(), operation.operands.end() - 1};
}

ShardingRule update_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(operation.operands[0].shape);
  for (std::uint32_t i = 0; i < operation.operands.size(); ++i) {
    const TensorWalk own = is_step(operation, i) ? TensorWalk{} : walk;
    builder.operand(own);
    if (i < operation.results.size()) builder.result(own);
  }
  return builder.build();
}

void gradient_descent_kernel(const KernelCall& call) {
  const double rate = call.operation.number("learning_rate");
  const double decay = call.operation.number("weight_decay");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double parameter = call.operands[0].data[i];
    call.results[0].data[i] = parameter - rate * (call.operands[1].data[i] + decay * parameter);
  }
}

void momentum_kernel(const KernelCall& call) {
  const double rate = call.operation.number("learning_rate");
  const double momentum = call.operation.number("momentum");
  const double decay = call.operation.number("weight_decay");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double parameter = call.operands[0].data[i];
    const double moment = momentum * call.operands[1].data[i] + call.operands[2].data[i] + decay * parameter;
    call.results[1].data[i] = moment;
    call.results[0].data[i] = parameter - rate * moment;
  }
}

void adam_kernel(const KernelCall& call) {
  const double decay = call.operation.number("weight_decay");
  const bool is_decoupled = call.operation.type->name == "ApplyAdamW";
  const double step = call.operands[3].data[0] + 1;
  const Adam adam(call.operation, step);
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double parameter = call.operands[0].data[i];
    const double gradient = call.operands[4].data[i] + (is_decoupled ? 0 : decay * parameter);
    double m = call.operands[1].data[i], v = call.operands[2].data[i];
    const double change = adam.change(gradient, m, v) + (is_decoupled ? decay * parameter : 0);
    call.results[0].data[i] = parameter - adam.rate() * change;
    call.results[1].data[i] = m;
    call.results[2].data[i] = v;
  }
  call.results[3].data[0] = step;
}

std::vector<TensorType> infer_clip_scale(const Operation& operation) {
  const TensorType& sum = operation.operands[0];
  if (!sum.shape.empty()) {
    operand_error(operation, fmt::format("square_sum is {}; expected a scalar", to_string(sum.shape)));
  }
  return {sum};
}

void clip_scale_kernel(const KernelCall& call) {
  const double norm = std::sqrt(call.operands[0].data[0]);
  const double limit = call.operation.number("clip_norm");
  call.results[0].data[0] = norm > limit ? limit / norm : 1.0;
}

/// An optimizer's update; `attributes` stand between the two that all have.
OperatorType update(std::string name, Signature signature, std::vector<AttributeSpec> attributes, std::string rule_text,
                    OperandGroups linear, Kernel kernel, double flops_per_point) {
  attributes.insert(attributes.begin(), number("learning_rate", std::nullopt, "factor of each step"));
  attributes.push_back(number("weight_decay", 0, "share of the parameter that is taken off"));
  return {.name = std::move(name),
          .signature = std::move(signature),
          .attributes = std::move(attributes),
          .infer = infer_update,
          .rule_text = std::move(rule_text),
          .rule = update_rule,
          .linear = std::move(linear),
          .kernel = kernel,
          .flops_per_point = flops_per_point};
}

OperatorType adam(std::string name) {
  return update(std::move(name), "param, m, v, step, grad -> param, m, v, step", adam_attributes(),
                "..., ..., ..., , ... -> ..., ..., ..., ", {}, adam_kernel, 14);
}

}  // namespace

std::vector<OperatorType> optimizer_operators() {
  return {
      update("ApplyGradientDescent", "param, grad -> param", {}, "..., ... -> ...", {{"param", "grad"}},
             gradient_descent_kernel, 4),
      update("ApplyMomentum", "param, moment, grad -> param, moment", {number("momentum", 0.9, "decay of the moment")},
             "..., ..., ... -> ..., ...", {{"param", "moment", "grad"}}, momentum_kernel, 6),
      adam("ApplyAdam"),
      adam("ApplyAdamW"),
      {.name = "ClipScale",
       .signature = "square_sum -> scale",
       .attributes = {number("clip_norm", std::nullopt, "largest global norm of all gradients")},
       .infer = infer_clip_scale,
       .rule_text = " -> ",
       .kernel = clip_scale_kernel},
  };
}

}  // namespace shardplan
