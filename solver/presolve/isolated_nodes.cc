#include "solver/presolve/isolated_nodes.h"

#include <algorithm>

namespace shardplan {

std::size_t fix_isolated_nodes(ReductionGraph& graph) {
  std::size_t num_fixed = 0;
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    const ReductionGraph::Node& node = graph.node(id);
    if (!node.is_alive || !graph.edges_of(id).empty()) continue;
    const std::int64_t least = *std::min_element(node.costs.begin(), node.costs.end());
    for (std::size_t value = 0; value < node.costs.size(); ++value) {
      const bool is_least = std::all_of(node.memory.begin(), node.memory.end(), [&](const UsageSegment& segment) {
        return (*segment.bytes)[value] == *std::min_element(segment.bytes->begin(), segment.bytes->end());
      });
      if (node.costs[value] != least || !is_least) continue;
      graph.fix(id, value);
      ++num_fixed;
      break;
    }
  }
  return num_fixed;
}

}  // namespace shardplan
