#include "strategies/data_parallel.h"

#include <utility>

namespace shardplan {

Strategy data_parallel_strategy(const Operation& operation, std::optional<std::uint32_t> batch_factor,
                                const DeviceMesh& mesh, const std::vector<AxisRef>& pieces, UnevenCuts uneven) {
  Strategy strategy = replicated_strategy(operation);
  if (!batch_factor) return strategy;
  std::vector<AxisRef>& axes = strategy.factors[*batch_factor];
  const std::int64_t size = operation.rule.factors[*batch_factor].size;
  for (const AxisRef& piece : pieces) {
    std::vector<AxisRef> before = axes;
    axes.push_back(piece);
    axes = joined(axes);
    const std::int64_t count = num_pieces(axes);
    const bool is_wanted = size % count == 0 || (uneven != UnevenCuts::kNone && wastes_little(size, count));
    if (!is_wanted || !check_strategy(operation, strategy, mesh).empty()) axes = std::move(before);
  }
  return strategy;
}

Strategy replicated_strategy(const Operation& operation) {
  Strategy strategy;
  strategy.factors.resize(operation.rule.factors.size());
  return strategy;
}

}  // namespace shardplan
