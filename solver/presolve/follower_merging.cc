#include "solver/presolve/follower_merging.h"

namespace shardplan {

std::size_t merge_followers(ReductionGraph& graph, std::int64_t entry_limit, const Deadline& deadline) {
  const std::size_t before = graph.num_alive();
  graph.settle();
  while (!graph.is_infeasible() && !deadline.is_over()) {
    const std::optional<std::size_t> id = graph.take_functional_edge();
    if (!id) break;
    const ReductionGraph::Edge& edge = graph.edge(*id);
    // If two nodes determine each other, the one with fewer edges follows.
    const bool is_first_leader =
        edge.maps[0] && (!edge.maps[1] || graph.edges_of(edge.nodes[0]).size() >= graph.edges_of(edge.nodes[1]).size());
    const std::size_t leader = edge.nodes[is_first_leader ? 0 : 1];
    const std::size_t follower = edge.nodes[is_first_leader ? 1 : 0];
    std::int64_t growth = 0;
    for (const std::uint32_t other : graph.edges_of(follower)) {
      const std::size_t end = graph.other_end(other, follower);
      if (end == leader) continue;
      growth +=
          static_cast<std::int64_t>(graph.num_values(end)) *
          (static_cast<std::int64_t>(graph.num_values(leader)) - static_cast<std::int64_t>(graph.num_values(follower)));
    }
    if (growth > 0 && graph.num_entries() + growth > entry_limit) continue;
    graph.follow(follower, leader, edge.maps[is_first_leader ? 0 : 1]);
    graph.settle();
  }
  if (!graph.is_infeasible()) graph.gather_memory();
  return before - graph.num_alive();
}

}  // namespace shardplan
