#include "strategies/data_parallel.h"

namespace shardplan {

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
