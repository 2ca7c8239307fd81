#include "layouts/redistribution/search/best_first_path.h"

#include <algorithm>

namespace shardplan {
namespace {

struct Waiting {
  Picoseconds ahead = 0;
  std::size_t misplaced = 0;
  std::uint32_t steps = 0;
  std::uint32_t state = 0;

  bool operator<(const Waiting& other) const {  // the heap gives the largest first
    if (ahead != other.ahead) return ahead > other.ahead;
    if (misplaced != other.misplaced) return misplaced > other.misplaced;
    return steps > other.steps;
  }
};

/// Of the pieces in which the target is said; one more than there are if the state cannot be said so.
std::size_t num_misplaced(const RedistributionGraph& graph, std::uint32_t state, std::uint32_t target) {
  const std::size_t chart = graph.chart_of(target);
  const PieceState* const here = graph.state(state, chart);
  if (here == nullptr) return PieceState::kMostPieces + 1;
  std::size_t misplaced = 0;
  for (std::size_t i = 0; i < PieceState::kMostPieces; ++i) {
    misplaced += here->place[i] != graph.state(target, chart)->place[i] ? 1 : 0;
  }
  return misplaced;
}

}  // namespace

std::optional<std::vector<ShortestPaths::Hop>> hasty_path(RedistributionGraph& graph, PriceList& prices,
                                                          std::uint32_t source, std::uint32_t target,
                                                          const PathBound& bound) {
  const LowerBounds bounds(graph, prices, target, bound.least_shards);
  std::vector<ShortestPaths::Hop> from(graph.num_states());
  std::vector<bool> is_met(graph.num_states());
  std::vector<Waiting> waiting;
  const auto meet = [&](std::uint32_t state, std::uint32_t steps) {
    is_met[state] = true;
    const Picoseconds ahead = bounds.of(state);
    if (ahead == LowerBounds::kNoWay) return;
    waiting.push_back({ahead, num_misplaced(graph, state, target), steps, state});
    std::push_heap(waiting.begin(), waiting.end());
  };
  meet(source, 0);
  for (std::size_t settled = 0; !waiting.empty() && settled < bound.most_settled; ++settled) {
    std::pop_heap(waiting.begin(), waiting.end());
    const Waiting here = waiting.back();
    waiting.pop_back();
    if (here.state == target) {
      std::vector<ShortestPaths::Hop> hops;
      for (std::uint32_t at = target; at != source; at = from[at].from) hops.push_back(from[at]);
      std::reverse(hops.begin(), hops.end());
      return hops;
    }
    const std::span<const RedistributionEdge> edges = graph.edges(here.state);
    is_met.resize(graph.num_states());
    from.resize(graph.num_states());
    for (const RedistributionEdge& edge : edges) {
      if (is_met[edge.target] || graph.num_shards(edge.target) < bound.least_shards) continue;
      from[edge.target] = {here.state, edge};
      meet(edge.target, here.steps + 1);
    }
  }
  return std::nullopt;
}

}  // namespace shardplan
