#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "layouts/redistribution/search/bounded_rows.h"
#include "layouts/redistribution/search/bounded_times.h"
#include "layouts/redistribution/search/edge_costs.h"
#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// The times of ShortestPaths between all states of a graph, for tensors of all sizes: a row from one state to every
/// other.
class PairwiseTimes {
 public:
  static constexpr Picoseconds kNoPath = BoundedTimes::kNoPath;

  /// With `bounded`, no intermediate state between a and b has fewer shards than both.
  PairwiseTimes(RedistributionGraph& graph, bool bounded)
      : graph_(graph), largest_(bounded ? LargestOnWay::kEnds : LargestOnWay::kAny) {}

  /// From each of `sources` to every state by its place; kNoPath if none is within the bound. Valid until the next
  /// call.
  std::vector<std::span<const Picoseconds>> rows(const std::vector<std::uint32_t>& sources, EdgeCosts& costs);
  /// The place of a state in the rows of the last call.
  std::size_t place(std::uint32_t state) const { return edges_.place(state); }
  /// Frees all rows.
  void forget() { sizes_.clear(); }

 private:
  struct TimesOfSize {
    std::vector<Picoseconds> edge_times;  // of the edges as `edges_` has them
    BoundedRows rows;
  };

  void lay_out_edges();

  RedistributionGraph& graph_;
  LargestOnWay largest_;
  BoundedTimes edges_;  // the cost of an arc is its edge class
  std::unordered_map<Bytes, TimesOfSize> sizes_;
};

}  // namespace shardplan
