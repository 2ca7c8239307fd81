#include "layouts/redistribution/search/shortest_paths.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {

ShortestPaths::ShortestPaths(RedistributionGraph& graph, EdgeCosts& costs, std::uint32_t source, PathBound bound,
                             std::optional<std::uint32_t> only_target)
    : graph_(graph), costs_(costs), source_(source), bound_(bound), labels_(source + 1) {
  if (only_target) remaining_.emplace(graph, costs, *only_target, bound.least_shards);
  labels_[source].steps = 0;
  queue_.push_back({0, 0, 0, source});
}

bool ShortestPaths::settle(std::uint32_t target) {
  while (target >= labels_.size() || !labels_[target].is_final) {
    if (queue_.empty() || num_settled_ >= bound_.most_settled || graph_.has_too_many_states()) return false;
    std::pop_heap(queue_.begin(), queue_.end());
    const std::uint32_t state = queue_.back().state;
    queue_.pop_back();
    if (labels_[state].is_final) continue;
    labels_[state].is_final = true;
    ++num_settled_;
    const std::span<const RedistributionEdge> edges = graph_.edges(state);
    if (labels_.size() < graph_.num_states()) labels_.resize(graph_.num_states());
    const Label here = labels_[state];
    const Bytes input = costs_.tensor_bytes() / graph_.num_shards(state);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const RedistributionEdge& edge = edges[i];
      Label& there = labels_[edge.target];
      const std::int64_t shards = graph_.num_shards(edge.target);
      if (there.is_final || shards < bound_.least_shards) continue;
      if (input + costs_.tensor_bytes() / shards > bound_.most_peak) continue;
      const StepCost& cost = costs_[edge];
      const Label next = {
          here.time + cost.time, here.sent + cost.sent, here.steps + 1, state, static_cast<std::uint32_t>(i), false};
      if (next.is_better(there)) {
        const Picoseconds remaining = remaining_ ? remaining_->of(edge.target) : 0;
        if (remaining == RemainingCost::kUnreachable || next.time + remaining > bound_.most_time) continue;
        there = next;
        queue_.push_back({next.time + remaining, next.sent, next.steps, edge.target});
        std::push_heap(queue_.begin(), queue_.end());
      } else if (next.is_equal(there) && next.parent != there.parent && graph_.is_before(state, there.parent)) {
        there = next;
      }
    }
  }
  return true;
}

std::optional<Picoseconds> ShortestPaths::time(std::uint32_t target) {
  if (!settle(target)) return std::nullopt;
  return labels_[target].time;
}

Path ShortestPaths::path(std::uint32_t target) {
  SHARDPLAN_CHECK(settle(target));
  Path path;
  for (std::uint32_t at = target; at != source_; at = labels_[at].parent) {
    path.push_back({labels_[at].parent, graph_.edges(labels_[at].parent)[labels_[at].edge]});
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::optional<Bytes> least_peak(RedistributionGraph& graph, Bytes tensor_bytes, std::uint32_t source,
                                std::uint32_t target) {
  using QueueEntry = std::pair<Bytes, std::uint32_t>;
  std::vector<QueueEntry> queue = {{0, source}};
  std::vector<Bytes> peaks(source + 1, INT64_MAX);
  peaks[source] = 0;
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto [peak, state] = queue.back();
    queue.pop_back();
    if (state == target) return peak;
    if (peak > peaks[state]) continue;
    const std::span<const RedistributionEdge> edges = graph.edges(state);
    if (peaks.size() < graph.num_states()) peaks.resize(graph.num_states(), INT64_MAX);
    for (const RedistributionEdge& edge : edges) {
      const Bytes step = tensor_bytes / graph.num_shards(state) + tensor_bytes / graph.num_shards(edge.target);
      const Bytes next = std::max(peak, step);
      if (next >= peaks[edge.target]) continue;
      peaks[edge.target] = next;
      queue.emplace_back(next, edge.target);
      std::push_heap(queue.begin(), queue.end(), std::greater<>());
    }
  }
  return std::nullopt;
}

}  // namespace shardplan
