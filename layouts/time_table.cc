#include "layouts/time_table.h"

#include <algorithm>

namespace shardplan {
namespace {

constexpr std::size_t kMostTimes = std::size_t{1} << 21;  // kept; 16 MiB a graph

}  // namespace

void TimeTable::lay_out_edges() {
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
    for (const RedistributionEdge& edge : graph_.edges(state)) edges_.push_back({edge.target, edge.price});
    std::stable_sort(edges_.begin() + static_cast<std::ptrdiff_t>(first_edge_.back()), edges_.end(),
                     [&](const Edge& a, const Edge& b) { return shards_[a.target] > shards_[b.target]; });
    first_edge_.push_back(edges_.size());
  }
}

const std::vector<Picoseconds>& TimeTable::row(std::uint32_t source, PriceList& prices) {
  lay_out_edges();
  if (num_times_ > kMostTimes) {
    sizes_.clear();
    num_times_ = 0;
  }
  OfSize& size = sizes_[prices.tensor_bytes()];
  if (size.edge_times.empty()) {
    for (const Edge& edge : edges_) size.edge_times.push_back(prices[edge.price].time);
  }
  const auto [known, is_new] = size.rows.try_emplace(source);
  std::vector<Picoseconds>& row = known->second;
  if (!is_new) return row;
  num_times_ += shards_.size();
  row.assign(shards_.size(), kNoPath);
  if (!bounded_) {
    search(source, 1, false, size, row);
    return row;
  }
  // The bound is the fewer shards of the two ends.
  search(source, shards_[source], false, size, row);
  for (const std::int64_t shards : shard_numbers_) {
    if (shards < shards_[source]) search(source, shards, true, size, row);
  }
  return row;
}

/// Dijkstra's algorithm among the states of `least_shards` and more. Fills the row at those states, or only at those
/// of exactly so many.
void TimeTable::search(std::uint32_t source, std::int64_t least_shards, bool only_these, const OfSize& size,
                       std::vector<Picoseconds>& row) {
  const auto is_wanted = [&](std::uint32_t state) {
    return only_these ? shards_[state] == least_shards : shards_[state] >= least_shards;
  };
  std::size_t left = 0;
  for (std::uint32_t state = 0; state < shards_.size(); ++state) left += is_wanted(state) ? 1 : 0;
  reached_.assign(shards_.size(), kNoPath);
  reached_[source] = 0;
  waiting_.assign(1, {0, source});
  while (!waiting_.empty() && left > 0) {
    std::pop_heap(waiting_.begin(), waiting_.end());
    const auto [time, state] = waiting_.back();
    waiting_.pop_back();
    if (time > reached_[state] || (is_wanted(state) && row[state] != kNoPath)) continue;
    if (is_wanted(state)) {
      row[state] = time;
      --left;
    }
    for (std::size_t i = first_edge_[state]; i < first_edge_[state + 1]; ++i) {
      const std::uint32_t target = edges_[i].target;
      if (shards_[target] < least_shards) break;
      const Picoseconds next = time + size.edge_times[i];
      if (next >= reached_[target]) continue;
      reached_[target] = next;
      waiting_.push_back({next, target});
      std::push_heap(waiting_.begin(), waiting_.end());
    }
  }
}

}  // namespace shardplan
