#include "layouts/redistribution/search/best_first_path.h"

#include <algorithm>

namespace shardplan {
namespace {

struct QueueEntry {
  Picoseconds remaining = 0;
  std::size_t misplaced = 0;
  std::uint32_t steps = 0;
  std::uint32_t state = 0;

  bool operator<(const QueueEntry& other) const {  // the heap gives the largest first
    if (remaining != other.remaining) return remaining > other.remaining;
    if (misplaced != other.misplaced) return misplaced > other.misplaced;
    return steps > other.steps;
  }
};

/// The number of pieces in the wrong place; one more than possible if the state is not in the target's space.
std::size_t num_misplaced(const RedistributionGraph& graph, std::uint32_t state, std::uint32_t target) {
  const std::size_t space = graph.space_of(target);
  const Placement* const here = graph.placement(state, space);
  if (here == nullptr) return Placement::kMostPieces + 1;
  const Placement& there = *graph.placement(target, space);
  std::size_t misplaced = 0;
  for (std::size_t i = 0; i < Placement::kMostPieces; ++i) {
    misplaced += here->positions[i] != there.positions[i] ? 1 : 0;
  }
  return misplaced;
}

}  // namespace

std::optional<Path> best_first_path(RedistributionGraph& graph, EdgeCosts& costs, std::uint32_t source,
                                    std::uint32_t target, const PathBound& bound) {
  const RemainingCost remaining_cost(graph, costs, target, bound.least_shards);
  std::vector<PathEdge> arrived_by(graph.num_states());
  std::vector<bool> is_met(graph.num_states());
  std::vector<QueueEntry> queue;
  const auto meet = [&](std::uint32_t state, std::uint32_t steps) {
    is_met[state] = true;
    const Picoseconds remaining = remaining_cost.of(state);
    if (remaining == RemainingCost::kUnreachable) return;
    queue.push_back({remaining, num_misplaced(graph, state, target), steps, state});
    std::push_heap(queue.begin(), queue.end());
  };
  meet(source, 0);
  for (std::size_t settled = 0; !queue.empty() && settled < bound.most_settled && !graph.has_too_many_states();
       ++settled) {
    std::pop_heap(queue.begin(), queue.end());
    const QueueEntry here = queue.back();
    queue.pop_back();
    if (here.state == target) {
      Path path;
      for (std::uint32_t at = target; at != source; at = arrived_by[at].from) path.push_back(arrived_by[at]);
      std::reverse(path.begin(), path.end());
      return path;
    }
    const std::span<const RedistributionEdge> edges = graph.edges(here.state);
    is_met.resize(graph.num_states());
    arrived_by.resize(graph.num_states());
    for (const RedistributionEdge& edge : edges) {
      if (is_met[edge.target] || graph.num_shards(edge.target) < bound.least_shards) continue;
      arrived_by[edge.target] = {here.state, edge};
      meet(edge.target, here.steps + 1);
    }
  }
  return std::nullopt;
}

}  // namespace shardplan
