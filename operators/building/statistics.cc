#include "operators/building/statistics.h"

#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"

namespace shardplan {

Shape kept_shape(const Operation& operation) {
  Shape shape = operation.operands[0].shape;
  for (const std::size_t axis : normal_axes(operation, operation.list("axis"), shape.size())) shape[axis] = 1;
  return shape;
}

std::vector<TensorType> infer_statistics(const Operation& operation) {
  return std::vector<TensorType>(operation.type->signature.results.size(),
                                 {kept_shape(operation), operation.operands[0].dtype});
}

ShardingRule statistic_rule(const Operation& operation) {
  const Shape& shape = operation.operands[0].shape;
  RuleBuilder builder;
  const TensorWalk x = builder.add_positions(shape);
  for (const std::size_t axis : normal_axes(operation, operation.list("axis"), shape.size())) {
    builder.set_kind(x[axis], FactorKind::kReduction);
  }
  add_broadcast_operands(builder, operation, x);
  for (const TensorType& result : operation.results) builder.result(broadcast_walk(x, shape, result.shape));
  return builder.build();
}

OperatorType statistic(std::string name, Signature signature, std::string rule_text, Kernel kernel) {
  return {.name = std::move(name),
          .signature = std::move(signature),
          .attributes = {list("axis", std::nullopt, "dimensions that are reduced")},
          .infer = infer_statistics,
          .rule_text = std::move(rule_text),
          .rule = statistic_rule,
          .kernel = kernel,
          .flops_per_point = 2,
          .is_internal = true};
}

OperatorType elementwise_phase(std::string name, Signature signature, std::vector<AttributeSpec> attributes,
                               std::string rule_text, Kernel kernel) {
  return {.name = std::move(name),
          .signature = std::move(signature),
          .attributes = std::move(attributes),
          .infer = infer_like_first,
          .rule_text = std::move(rule_text),
          .rule = elementwise_rule,
          .kernel = kernel,
          .flops_per_point = 4,
          .is_internal = true};
}

void add_broadcast_operands(RuleBuilder& builder, const Operation& operation, const TensorWalk& walk) {
  for (const TensorType& operand : operation.operands) {
    builder.operand(broadcast_walk(walk, operation.operands[0].shape, operand.shape));
  }
}

void divide_by_count(const KernelCall& call, std::size_t result) {
  const std::int64_t results = num_elements(call.operation.results[result].shape);
  const auto count = static_cast<double>(num_elements(call.operation.operands[0].shape) / results);
  const std::int64_t size = num_elements(call.results[result].shape);
  for (std::int64_t i = 0; i < size; ++i) call.results[result].data[i] /= count;
}

}  // namespace shardplan
