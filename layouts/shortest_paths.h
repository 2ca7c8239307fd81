#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "layouts/redistribution_graph.h"

namespace shardplan {

/// No step takes longer or sends more than this (10 hours, 32 PiB): what would is cut off, so that sums cannot
/// overflow.
inline constexpr std::int64_t kMostOfStep = std::int64_t{1} << 55;
/// What the members of a group hold together of what one holds `shard` bytes.
Bytes of_group(Bytes shard, std::int64_t group_size);

/// The prices of a graph's edges for tensors of one size, asked once each.
class PriceList {
 public:
  PriceList(const RedistributionGraph& graph, const CollectiveCosts& costs, Bytes tensor_bytes)
      : graph_(graph), costs_(costs), tensor_bytes_(tensor_bytes) {}

  struct Entry {
    Picoseconds time = -1;  // not asked yet
    Bytes sent = 0;         // by the busiest device
  };
  const Entry& operator[](std::uint32_t price);
  Bytes tensor_bytes() const { return tensor_bytes_; }

 private:
  const RedistributionGraph& graph_;
  const CollectiveCosts& costs_;
  Bytes tensor_bytes_;
  std::vector<Entry> entries_;
};

/// What a path may not exceed.
struct PathBound {
  std::int64_t least_shards = 1;  // every state cuts the tensor in at least so many pieces
  Bytes most_peak = INT64_MAX;    // input plus output of every step
  Picoseconds most_time = INT64_MAX;
  std::size_t most_settled = SIZE_MAX;  // states; then the search gives up

  bool operator==(const PathBound&) const = default;
};

/// Dijkstra's algorithm from one state, as far as it has been asked: cheapest time, then fewest bytes sent, then fewest
/// steps; among equals the predecessor that comes first in the graph's order of states and edges.
class ShortestPaths {
 public:
  ShortestPaths(RedistributionGraph& graph, PriceList& prices, std::uint32_t source, PathBound bound);

  /// Nothing if no path keeps the bound, or the search gave up.
  std::optional<Picoseconds> time(std::uint32_t target);
  struct Hop {
    std::uint32_t from = 0;
    RedistributionEdge edge;
  };
  /// Requires that there is a path.
  std::vector<Hop> path(std::uint32_t target);

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
  struct Waiting {
    Picoseconds time;
    Bytes sent;
    std::uint32_t steps;
    std::uint32_t state;
    bool operator<(const Waiting& other) const {  // the heap gives the largest first
      if (time != other.time) return time > other.time;
      if (sent != other.sent) return sent > other.sent;
      return steps > other.steps;
    }
  };
  bool settle(std::uint32_t target);

  RedistributionGraph& graph_;
  PriceList& prices_;
  std::uint32_t source_;
  PathBound bound_;
  std::vector<Label> labels_;
  std::vector<Waiting> waiting_;
  std::size_t num_settled_ = 0;
};

/// The least over all paths of the largest input plus output of a step.
std::optional<Bytes> least_peak(RedistributionGraph& graph, Bytes tensor_bytes, std::uint32_t source,
                                std::uint32_t target);

}  // namespace shardplan
