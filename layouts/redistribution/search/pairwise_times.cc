#include "layouts/redistribution/search/pairwise_times.h"

#include <algorithm>

namespace shardplan {
namespace {

constexpr std::size_t kMostTimes = std::size_t{1} << 21;  // kept; 16 MiB a graph

}  // namespace

void PairwiseTimes::lay_out_edges() {
  for (std::uint32_t state = 0; state < graph_.num_states(); ++state) graph_.edges(state);
  const std::size_t num_states = graph_.num_states();
  if (shards_.size() == num_states) return;
  sizes_.clear();
  num_times_ = 0;
  shards_.clear();
  for (std::uint32_t state = 0; state < num_states; ++state) shards_.push_back(graph_.num_shards(state));
  shard_numbers_ = shards_;
  std::sort(shard_numbers_.begin(), shard_numbers_.end());
  shard_numbers_.erase(std::unique(shard_numbers_.begin(), shard_numbers_.end()), shard_numbers_.end());
  edges_.clear();
  first_edge_.assign(1, 0);
  for (std::uint32_t state = 0; state < num_states; ++state) {
    for (const RedistributionEdge& edge : graph_.edges(state)) edges_.push_back({edge.target, edge.edge_class});
    std::stable_sort(edges_.begin() + static_cast<std::ptrdiff_t>(first_edge_.back()), edges_.end(),
                     [&](const Edge& a, const Edge& b) { return shards_[a.target] > shards_[b.target]; });
    first_edge_.push_back(edges_.size());
  }
}

const std::vector<Picoseconds>& PairwiseTimes::row(std::uint32_t source, EdgeCosts& costs) {
  lay_out_edges();
  if (num_times_ > kMostTimes) {
    sizes_.clear();
    num_times_ = 0;
  }
  TimesOfSize& size = sizes_[costs.tensor_bytes()];
  if (size.edge_times.empty()) {
    for (const Edge& edge : edges_) size.edge_times.push_back(costs[edge.edge_class].time);
  }
  const auto [known, is_new] = size.rows.try_emplace(source);
  std::vector<Picoseconds>& row = known->second;
  if (!is_new) return row;
  num_times_ += shards_.size();
  row.assign(shards_.size(), kNoPath);
  reached_.assign(shards_.size(), kNoPath);
  reached_[source] = 0;
  next_edge_.assign(first_edge_.begin(), first_edge_.end() - 1);
  queue_.assign(1, {0, source});
  if (!bounded_) {
    settle(1, size);
    row = reached_;
    return row;
  }
  // The bound is the smaller number of shards of the two ends. Each lower bound admits some more states; times so far
  // stay, except where a path through the new states is shorter.
  for (auto least = shard_numbers_.rbegin(); least != shard_numbers_.rend(); ++least) {
    if (*least > shards_[source]) continue;
    for (std::uint32_t state = 0; state < shards_.size(); ++state) {
      if (reached_[state] != kNoPath) relax(state, next_edge_[state], *least, size);
    }
    settle(*least, size);
    for (std::uint32_t state = 0; state < shards_.size(); ++state) {
      const bool is_bound = shards_[state] == *least || (shards_[state] > *least && *least == shards_[source]);
      if (is_bound) row[state] = reached_[state];
    }
  }
  return row;
}

/// Dijkstra's algorithm among the states of `least_shards` and more, from where it stands.
void PairwiseTimes::settle(std::int64_t least_shards, const TimesOfSize& size) {
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const auto [time, state] = queue_.back();
    queue_.pop_back();
    if (time == reached_[state]) relax(state, first_edge_[state], least_shards, size);
  }
}

void PairwiseTimes::relax(std::uint32_t state, std::size_t edge, std::int64_t least_shards, const TimesOfSize& size) {
  for (; edge < first_edge_[state + 1]; ++edge) {
    const std::uint32_t target = edges_[edge].target;
    if (shards_[target] < least_shards) break;
    const Picoseconds time = reached_[state] + size.edge_times[edge];
    if (time >= reached_[target]) continue;
    reached_[target] = time;
    queue_.push_back({time, target});
    std::push_heap(queue_.begin(), queue_.end());
  }
  next_edge_[state] = edge;
}

}  // namespace shardplan
