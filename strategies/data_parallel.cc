#include "strategies/data_parallel.h"

namespace shardplan {
namespace {

/// The factor that the first dimension walks first (of a compound dimension the major one), if any.
std::optional<std::uint32_t> leading_factor(const TensorWalk& walk) {
  if (walk.empty()) return std::nullopt;
  if (walk[0].window) return walk[0].window->output;
  if (walk[0].factors.empty()) return std::nullopt;
  return walk[0].factors[0];
}

}  // namespace

IdVector<OperatorId, std::optional<std::uint32_t>> batch_factors(const OperatorGraph& graph) {
  IdVector<TensorId, char> has_batch(graph.tensors().size(), 0);
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    has_batch[id] = tensor.kind == TensorKind::kInput && !tensor.type.shape.empty();
  }
  IdVector<OperatorId, std::optional<std::uint32_t>> result(graph.operators().size());
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const ShardingRule& rule = graph.operation(id).rule;
    for (std::size_t operand = 0; operand < op.operands.size() && !result[id]; ++operand) {
      if (has_batch[op.operands[operand]]) result[id] = leading_factor(rule.operands[operand]);
    }
    // A view of what every device has its own of is one of each device's; it makes no batch of it.
    if (!result[id] && op.operands.size() == 1 && graph.tensor(op.operands[0]).layerwise_parallel) {
      result[id] = leading_factor(rule.operands[0]);
      continue;
    }
    if (!result[id]) continue;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      has_batch[op.results[i]] = leading_factor(rule.results[i]) == result[id];
    }
  }
  return result;
}

Strategy data_parallel_strategy(const Operation& operation, std::optional<std::uint32_t> batch_factor,
                                const DeviceMesh& mesh, UnevenCuts uneven) {
  Strategy strategy = replicated_strategy(operation);
  if (!batch_factor) return strategy;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    strategy.factors[*batch_factor].push_back(mesh.whole(axis));
    const std::int64_t size = operation.rule.factors[*batch_factor].size;
    const std::int64_t pieces = num_pieces(strategy.factors[*batch_factor]);
    const bool is_wanted = size % pieces == 0 || (uneven != UnevenCuts::kNone && wastes_little(size, pieces));
    if (is_wanted && check_strategy(operation, strategy, mesh).empty()) continue;
    strategy.factors[*batch_factor].pop_back();
    break;
  }
  return strategy;
}

Strategy replicated_strategy(const Operation& operation) {
  Strategy strategy;
  strategy.factors.resize(operation.rule.factors.size());
  return strategy;
}

}  // namespace shardplan
