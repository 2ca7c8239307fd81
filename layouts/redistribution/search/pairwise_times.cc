#include "layouts/redistribution/search/pairwise_times.h"

#include <utility>

namespace shardplan {
/// Of all states that the graph has now, or that can be reached from these.
void PairwiseTimes::lay_out_edges() {
  if (edges_.num_states() == graph_.num_states()) return;
  for (std::uint32_t state = 0; state < graph_.num_states(); ++state) graph_.edges(state);
  const std::size_t num_states = graph_.num_states();
  sizes_.clear();
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> first_arc = {0};
  std::vector<BoundedTimes::Arc> arcs;
  for (std::uint32_t state = 0; state < num_states; ++state) {
    sizes.push_back(-graph_.num_shards(state));  // more shards are smaller
    for (const RedistributionEdge& edge : graph_.edges(state)) arcs.push_back({edge.target, edge.edge_class});
    first_arc.push_back(arcs.size());
  }
  edges_ = BoundedTimes(std::move(sizes), std::move(first_arc), std::move(arcs));
}

std::vector<std::span<const Picoseconds>> PairwiseTimes::rows(const std::vector<std::uint32_t>& sources,
                                                              EdgeCosts& costs) {
  lay_out_edges();
  TimesOfSize& size = sizes_[costs.tensor_bytes()];
  if (size.edge_times.empty()) {
    for (const BoundedTimes::Arc& arc : edges_.arcs()) size.edge_times.push_back(costs[arc.cost].time);
  }
  return size.rows.rows(edges_, size.edge_times, largest_, sources);
}

}  // namespace shardplan
