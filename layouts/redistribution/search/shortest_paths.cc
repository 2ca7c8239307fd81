#include "layouts/redistribution/search/shortest_paths.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {

ShortestPaths::ShortestPaths(RedistributionGraph& graph, PriceList& prices, std::uint32_t source, PathBound bound,
                             std::optional<std::uint32_t> only_target)
    : graph_(graph), prices_(prices), source_(source), bound_(bound), labels_(source + 1) {
  if (only_target) ahead_.emplace(graph, prices, *only_target, bound.least_shards);
  labels_[source].steps = 0;
  waiting_.push_back({0, 0, 0, source});
}

bool ShortestPaths::settle(std::uint32_t target) {
  while (target >= labels_.size() || !labels_[target].is_final) {
    if (waiting_.empty() || num_settled_ >= bound_.most_settled) return false;
    std::pop_heap(waiting_.begin(), waiting_.end());
    const std::uint32_t state = waiting_.back().state;
    waiting_.pop_back();
    if (labels_[state].is_final) continue;
    labels_[state].is_final = true;
    ++num_settled_;
    const std::span<const RedistributionEdge> edges = graph_.edges(state);
    if (labels_.size() < graph_.num_states()) labels_.resize(graph_.num_states());
    const Label here = labels_[state];
    const Bytes input = prices_.tensor_bytes() / graph_.num_shards(state);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const RedistributionEdge& edge = edges[i];
      Label& there = labels_[edge.target];
      const std::int64_t shards = graph_.num_shards(edge.target);
      if (there.is_final || shards < bound_.least_shards) continue;
      if (input + prices_.tensor_bytes() / shards > bound_.most_peak) continue;
      const PriceList::Entry& price = prices_[edge.price];
      const Label next = {
          here.time + price.time, here.sent + price.sent, here.steps + 1, state, static_cast<std::uint32_t>(i), false};
      if (next.is_better(there)) {
        const Picoseconds ahead = ahead_ ? ahead_->of(edge.target) : 0;
        if (ahead == LowerBounds::kNoWay || next.time + ahead > bound_.most_time) continue;
        there = next;
        waiting_.push_back({next.time + ahead, next.sent, next.steps, edge.target});
        std::push_heap(waiting_.begin(), waiting_.end());
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

std::vector<ShortestPaths::Hop> ShortestPaths::path(std::uint32_t target) {
  SHARDPLAN_CHECK(settle(target));
  std::vector<Hop> hops;
  for (std::uint32_t at = target; at != source_; at = labels_[at].parent) {
    hops.push_back({labels_[at].parent, graph_.edges(labels_[at].parent)[labels_[at].edge]});
  }
  std::reverse(hops.begin(), hops.end());
  return hops;
}

std::optional<Bytes> least_peak(RedistributionGraph& graph, Bytes tensor_bytes, std::uint32_t source,
                                std::uint32_t target) {
  using Waiting = std::pair<Bytes, std::uint32_t>;
  std::vector<Waiting> waiting = {{0, source}};
  std::vector<Bytes> peaks(source + 1, INT64_MAX);
  peaks[source] = 0;
  while (!waiting.empty()) {
    std::pop_heap(waiting.begin(), waiting.end(), std::greater<>());
    const auto [peak, state] = waiting.back();
    waiting.pop_back();
    if (state == target) return peak;
    if (peak > peaks[state]) continue;
    const std::span<const RedistributionEdge> edges = graph.edges(state);
    if (peaks.size() < graph.num_states()) peaks.resize(graph.num_states(), INT64_MAX);
    for (const RedistributionEdge& edge : edges) {
      const Bytes step = tensor_bytes / graph.num_shards(state) + tensor_bytes / graph.num_shards(edge.target);
      const Bytes next = std::max(peak, step);
      if (next >= peaks[edge.target]) continue;
      peaks[edge.target] = next;
      waiting.emplace_back(next, edge.target);
      std::push_heap(waiting.begin(), waiting.end(), std::greater<>());
    }
  }
  return std::nullopt;
}

}  // namespace shardplan
