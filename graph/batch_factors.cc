#include "graph/batch_factors.h"

namespace shardplan {

std::optional<std::uint32_t> leading_factor(const TensorWalk& walk) {
  if (walk.empty()) return std::nullopt;
  if (walk[0].window) return walk[0].window->output;
  if (walk[0].factors.empty()) return std::nullopt;
  return walk[0].factors[0];
}

BatchFactors find_batch(const OperatorGraph& graph) {
  BatchFactors found;
  found.factors.resize(graph.operators().size());
  found.has_batch.resize(graph.tensors().size(), 0);
  IdVector<TensorId, char> is_own(graph.tensors().size(), 0);
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    found.has_batch[id] = tensor.kind == TensorKind::kInput && !tensor.type.shape.empty();
    is_own[id] = tensor.layerwise_parallel;
  }
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const ShardingRule& rule = graph.operation(id).rule;
    std::optional<std::uint32_t>& factor = found.factors[id];
    const auto take_from = [&](const IdVector<TensorId, char>& is_it) {
      for (std::size_t operand = 0; operand < op.operands.size() && !factor; ++operand) {
        if (is_it[op.operands[operand]]) factor = leading_factor(rule.operands[operand]);
      }
      return factor.has_value();
    };
    // The gradient that a mean or sum passes back does not depend on an input; it has the batch of the forward operand.
    const auto take_from_forward = [&] {
      if (op.pass != Pass::kBackward || !op.forward || op.results.empty()) return false;
      const Shape& shape = graph.tensor(op.results[0]).type.shape;
      for (const TensorId operand : graph.operators()[*op.forward].operands) {
        if (!found.has_batch[operand] || graph.tensor(operand).type.shape != shape) continue;
        factor = leading_factor(rule.results[0]);
        return factor.has_value();
      }
      return false;
    };
    const bool has_batch = take_from(found.has_batch) || take_from_forward();
    if (!has_batch && (op.pass != Pass::kForward || !take_from(is_own))) continue;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      (has_batch ? found.has_batch : is_own)[op.results[i]] = leading_factor(rule.results[i]) == factor;
    }
  }
  return found;
}

}  // namespace shardplan
