#include "graph/batch_factors.h"

#include <algorithm>

namespace shardplan {
namespace {

/// Whether the first input and all others of two or more dimensions begin with one of size 1.
bool is_batch_of_one(const OperatorGraph& graph) {
  bool has_input = false;
  for (const GraphTensor& tensor : graph.tensors()) {
    const Shape& shape = tensor.type.shape;
    if (tensor.kind != TensorKind::kInput || shape.empty() || (has_input && shape.size() == 1)) continue;
    if (shape[0] != 1) return false;
    has_input = true;
  }
  return has_input;
}

}  // namespace

std::optional<std::uint32_t> leading_factor(const TensorWalk& walk, std::size_t dimension) {
  if (walk.size() <= dimension) return std::nullopt;
  if (walk[dimension].window) return walk[dimension].window->output;
  if (walk[dimension].factors.empty()) return std::nullopt;
  return walk[dimension].factors[0];
}

std::optional<std::uint8_t> led_dimension(const TensorWalk& walk, std::uint32_t factor) {
  for (std::size_t d = 0; d < walk.size(); ++d) {
    if (leading_factor(walk, d) == factor) return static_cast<std::uint8_t>(d);
  }
  return std::nullopt;
}

BatchFactors find_batch(const OperatorGraph& graph) {
  BatchFactors found;
  const bool is_one = is_batch_of_one(graph);
  found.factors.resize(graph.operators().size());
  found.is_of_one.resize(graph.tensors().size());
  using Dimension = std::optional<std::uint8_t>;
  // The dimension that is the batch, or that is separate on each device.
  IdVector<TensorId, Dimension> batch(graph.tensors().size()), own(graph.tensors().size());
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    const bool has_batch = !tensor.type.shape.empty() && (!is_one || tensor.type.shape[0] == 1);
    if (tensor.kind == TensorKind::kInput && has_batch) batch[id] = 0;
    found.is_of_one[id] = is_one && batch[id] ? 1 : 0;
    if (tensor.layerwise_parallel) own[id] = 0;
  }
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const ShardingRule& rule = graph.operation(id).rule;
    std::optional<std::uint32_t>& factor = found.factors[id];
    if (std::ranges::any_of(op.operands, [&](TensorId operand) { return found.is_of_one[operand] != 0; })) {
      for (const TensorId result : op.results) found.is_of_one[result] = 1;
    }
    const auto take_from = [&](const IdVector<TensorId, Dimension>& dimensions) {
      for (std::size_t operand = 0; operand < op.operands.size() && !factor; ++operand) {
        const Dimension& dimension = dimensions[op.operands[operand]];
        if (dimension) factor = leading_factor(rule.operands[operand], *dimension);
      }
      return factor.has_value();
    };
    // The gradient that a mean or sum passes back does not depend on an input; it has the batch of the forward operand.
    const auto take_from_forward = [&] {
      if (op.pass != Pass::kBackward || !op.forward || op.results.empty()) return false;
      const Shape& shape = graph.tensor(op.results[0]).type.shape;
      for (const TensorId operand : graph.operators()[*op.forward].operands) {
        if (!batch[operand] || graph.tensor(operand).type.shape != shape) continue;
        factor = leading_factor(rule.results[0], *batch[operand]);
        return factor.has_value();
      }
      return false;
    };
    const bool has_batch = take_from(batch) || take_from_forward();
    if (!has_batch && (op.pass != Pass::kForward || !take_from(own))) continue;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const Dimension dimension = led_dimension(rule.results[i], *factor);
      if (dimension) (has_batch ? batch : own)[op.results[i]] = dimension;
    }
  }
  for (const TensorId id : graph.tensors().ids()) found.has_batch.push_back(batch[id] == 0);
  return found;
}

std::int64_t batch_size(const OperatorGraph& graph) {
  const BatchFactors batch = find_batch(graph);
  for (const OperatorId op : graph.operators().ids()) {
    if (const std::optional<std::uint32_t>& factor = batch.factors[op])
      return graph.operation(op).rule.factors[*factor].size;
  }
  return 1;
}

}  // namespace shardplan
