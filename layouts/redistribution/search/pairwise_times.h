#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "layouts/redistribution/search/shortest_paths.h"

namespace shardplan {

/// The times of ShortestPaths between all states of a graph, for tensors of all sizes: a row from one state to every
/// other. A matrix of redistribution times needs some hundred thousand of them, so edges lie in one array and no path
/// is kept.
class PairwiseTimes {
 public:
  static constexpr Picoseconds kNoPath = INT64_MAX;

  /// With `bounded`, no state on the way from a to b has fewer shards than both.
  PairwiseTimes(RedistributionGraph& graph, bool bounded) : graph_(graph), bounded_(bounded) {}

  /// From `source` to every state by number; kNoPath where none keeps the bound. Valid until the next call.
  const std::vector<Picoseconds>& row(std::uint32_t source, EdgeCosts& costs);

 private:
  /// An edge of the graph as far as times matter. Those of a state lie together, most shards first.
  struct Edge {
    std::uint32_t target = 0;
    std::uint32_t edge_class = 0;
  };
  struct QueueEntry {
    Picoseconds time = 0;
    std::uint32_t state = 0;
    bool operator<(const QueueEntry& other) const { return time > other.time; }  // the heap gives the largest first
  };
  struct TimesOfSize {
    std::vector<Picoseconds> edge_times;
    std::unordered_map<std::uint32_t, std::vector<Picoseconds>> rows;
  };

  void lay_out_edges();
  void settle(std::int64_t least_shards, const TimesOfSize& size);
  void relax(std::uint32_t state, std::size_t edge, std::int64_t least_shards, const TimesOfSize& size);

  RedistributionGraph& graph_;
  bool bounded_;
  std::vector<std::size_t> first_edge_;  // by state, and one more
  std::vector<Edge> edges_;
  std::vector<std::int64_t> shards_;         // by state
  std::vector<std::int64_t> shard_numbers_;  // the different ones, ascending
  std::unordered_map<Bytes, TimesOfSize> sizes_;
  std::size_t num_times_ = 0;  // in all rows
  // The state of the search for one row:
  std::vector<Picoseconds> reached_;
  std::vector<std::size_t> next_edge_;  // by state, the first that leads below the bound
  std::vector<QueueEntry> queue_;
};

}  // namespace shardplan
