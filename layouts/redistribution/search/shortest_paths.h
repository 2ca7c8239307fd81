#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "layouts/redistribution/search/edge_costs.h"
#include "layouts/redistribution/search/redistribution_graph.h"
#include "layouts/redistribution/search/remaining_cost.h"

namespace shardplan {

/// What a path may not exceed.
struct PathBound {
  std::int64_t least_shards = 1;  // every state cuts the tensor into at least this many pieces
  Bytes most_peak = INT64_MAX;    // input plus output of every step
  Picoseconds most_time = INT64_MAX;
  std::size_t most_settled = SIZE_MAX;  // states; then the search gives up

  bool operator==(const PathBound&) const = default;
};

/// Dijkstra's algorithm from one state, run as far as the targets require: cheapest time, then fewest bytes sent, then
/// fewest steps; among equals the predecessor that comes first in the graph's order of states and edges.
class ShortestPaths {
 public:
  /// With `only_target` no other target is allowed; the remaining cost to it then leads the search (A*), which finds
  /// the same path as without.
  ShortestPaths(RedistributionGraph& graph, EdgeCosts& costs, std::uint32_t source, PathBound bound,
                std::optional<std::uint32_t> only_target = {});

  /// Nothing if no path keeps the bound, or the search gave up.
  std::optional<Picoseconds> time(std::uint32_t target);
  /// Requires that there is a path.
  Path path(std::uint32_t target);

 private:
  struct Label {
    Picoseconds time = 0;
    Bytes sent = 0;
    std::uint32_t steps = UINT32_MAX;  // not reached
    std::uint32_t parent = 0;
    std::uint32_t edge = 0;
    bool is_final = false;

    bool is_better(const Label& other) const {
      if (other.steps == UINT32_MAX) return true;
      if (time != other.time) return time < other.time;
      if (sent != other.sent) return sent < other.sent;
      return steps < other.steps;
    }
    bool is_equal(const Label& other) const { return time == other.time && sent == other.sent && steps == other.steps; }
  };
  struct QueueEntry {
    Picoseconds time;  // a lower bound on any path through it
    Bytes sent;
    std::uint32_t steps;
    std::uint32_t state;
    bool operator<(const QueueEntry& other) const {  // the heap gives the largest first
      if (time != other.time) return time > other.time;
      if (sent != other.sent) return sent > other.sent;
      return steps > other.steps;
    }
  };
  bool settle(std::uint32_t target);

  RedistributionGraph& graph_;
  EdgeCosts& costs_;
  std::uint32_t source_;
  PathBound bound_;
  std::optional<RemainingCost> remaining_;
  std::vector<Label> labels_;
  std::vector<QueueEntry> queue_;
  std::size_t num_settled_ = 0;
};

/// The least over all paths of the largest input plus output of a step.
std::optional<Bytes> least_peak(RedistributionGraph& graph, Bytes tensor_bytes, std::uint32_t source,
                                std::uint32_t target);

}  // namespace shardplan
