#include "operators/families/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

/// Adam's count of steps is a scalar, all other operands are shaped as the parameter.
bool is_step(const Operation& operation, std::size_t operand) {
  return operation.type->operand_names[operand] == "step";
}

bool is_linear(const Operation& operation) { return operation.operands.size() < 5; }

}  // namespace

std::vector<TensorType> infer_update(const Operation& operation) {
  const TensorType& parameter = operation.operands[0];
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const Shape wanted = is_step(operation, i) ? Shape{} : parameter.shape;
    if (operation.operands[i].shape == wanted) continue;
    operand_error(operation, fmt::format("{} is {}; expected {}", operation.type->operand_names[i],
                                         to_string(operation.operands[i].shape), to_string(wanted)));
  }
  return {operation.operands.begin(), operation.operands.end() - 1};
}

ShardingRule update_rule(const Operation& operation) {
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(operation.operands[0].shape);
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < operation.operands.size(); ++i) {
    const TensorWalk own = is_step(operation, i) ? TensorWalk{} : walk;
    builder.operand(own);
    if (i < operation.results.size()) builder.result(own);
    all.push_back(i);
  }
  if (is_linear(operation)) builder.linear(all);
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

/// Kingma and Ba, 2015, with the corrections of both moments' bias.
void adam_kernel(const KernelCall& call) {
  const double rate = call.operation.number("learning_rate");
  const double beta1 = call.operation.number("beta1");
  const double beta2 = call.operation.number("beta2");
  const double eps = call.operation.number("eps");
  const double decay = call.operation.number("weight_decay");
  const bool is_decoupled = call.operation.type->name == "ApplyAdamW";
  const double step = call.operands[3].data[0] + 1;
  const double correction1 = 1 - std::pow(beta1, step);
  const double correction2 = 1 - std::pow(beta2, step);
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double parameter = call.operands[0].data[i];
    const double gradient = call.operands[4].data[i] + (is_decoupled ? 0 : decay * parameter);
    const double m = beta1 * call.operands[1].data[i] + (1 - beta1) * gradient;
    const double v = beta2 * call.operands[2].data[i] + (1 - beta2) * gradient * gradient;
    const double change =
        (m / correction1) / (std::sqrt(v / correction2) + eps) + (is_decoupled ? decay * parameter : 0);
    call.results[0].data[i] = parameter - rate * change;
    call.results[1].data[i] = m;
    call.results[2].data[i] = v;
  }
  call.results[3].data[0] = step;
}

void clip_scale_kernel(const KernelCall& call) {
  const double norm = std::sqrt(call.operands[0].data[0]);
  const double limit = call.operation.number("clip_norm");
  call.results[0].data[0] = norm > limit ? limit / norm : 1.0;
}

}  // namespace shardplan
