#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "layouts/redistribution/search/bounded_times.h"
#include "layouts/redistribution/search/edge_costs.h"
#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// The times of ShortestPaths between all states of a graph, for tensors of all sizes: a row from one state to every
/// other.
class PairwiseTimes {
 public:
  static constexpr Picoseconds kNoPath = BoundedTimes::kNoPath;

  /// With `bounded`, no state on the way from a to b has fewer shards than both.
  PairwiseTimes(RedistributionGraph& graph, bool bounded) : graph_(graph), bounded_(bounded) {}

  /// From `source` to every state by number; kNoPath where none keeps the bound. Valid until the next call.
  const std::vector<Picoseconds>& row(std::uint32_t source, EdgeCosts& costs);

 private:
  struct TimesOfSize {
    std::vector<Picoseconds> edge_times;  // of the edges as `edges_` has them
    std::unordered_map<std::uint32_t, std::vector<Picoseconds>> rows;
  };

  void lay_out_edges();

  RedistributionGraph& graph_;
  bool bounded_;
  BoundedTimes edges_;  // the cost of an arc is its edge class
  std::unordered_map<Bytes, TimesOfSize> sizes_;
  std::size_t num_times_ = 0;  // in all rows
};

}  // namespace shardplan
