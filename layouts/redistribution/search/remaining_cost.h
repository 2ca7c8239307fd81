#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "layouts/redistribution/search/edge_costs.h"
#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// What a path from a state to one target costs at least: the heuristic of an A* search.
///
/// It distinguishes states only by which pieces shard the tensor and which are partial, not by where they stand: all
/// exchanges within the tensor are then free, and the shortest paths between these few sets (27 for three pieces) never
/// cost more than the true ones. The heuristic is consistent (no step is cheaper than what it takes off the remaining
/// cost), so a search that is led by it finds the same path as without. Pieces that cannot move are left out. Where
/// there are still too many sets, partial pieces count as unused ones, and what may become partial for free may be
/// gathered for free.
class RemainingCost {
 public:
  /// Only over sets with at least `least_shards` shards. Zero everywhere if there are still too many sets.
  RemainingCost(RedistributionGraph& graph, EdgeCosts& costs, std::uint32_t target, std::int64_t least_shards);

  static constexpr Picoseconds kUnreachable = INT64_MAX;
  Picoseconds of(std::uint32_t state) const { return remaining_.empty() ? 0 : remaining_[position(state)]; }

 private:
  using Pieces = std::uint32_t;  // one bit each
  struct Sets {
    Pieces sharding = 0;
    Pieces partial = 0;
  };
  /// The sets of one space's pieces.
  struct Space {
    std::vector<std::size_t> pieces;  // that move
    std::vector<std::int64_t> sizes;  // product of every set of pieces, times those that stay
    std::size_t first = 0;            // position of the empty sets
    /// Sets that a permute turns into each other, by shards and summands.
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Sets>> alike;
    std::map<std::int64_t, std::vector<Picoseconds>> permutes;  // by shards, by set

    Pieces all() const { return static_cast<Pieces>(sizes.size() - 1); }
    std::size_t position(const Sets& sets) const { return first + (sets.sharding | sets.partial << pieces.size()); }
  };
  struct QueueEntry {
    Picoseconds time;
    std::uint32_t space;
    Sets sets;
    bool operator<(const QueueEntry& other) const { return time > other.time; }  // the heap gives the largest first
  };

  bool list_sets();
  void join_spaces();
  std::size_t position(std::uint32_t state) const;
  void find_all(std::uint32_t target);
  void reach(std::uint32_t space, const Sets& sets, Picoseconds time);
  void leave(std::uint32_t space, const Sets& sets, Picoseconds time);
  Picoseconds time_of(std::uint32_t space, CollectiveKind kind, Pieces pieces, std::int64_t divisor);
  const std::vector<Picoseconds>& least_permutes(std::uint32_t space, std::int64_t shards);

  RedistributionGraph& graph_;
  EdgeCosts& costs_;
  std::int64_t least_shards_;
  bool with_partial_ = false;  // distinguishes partial pieces from unused ones
  std::vector<Space> spaces_;
  std::vector<Picoseconds> remaining_;                   // by position
  std::vector<std::pair<std::uint32_t, Sets>> same_as_;  // by position: the same sets in the next space, or itself
  std::vector<QueueEntry> queue_;
};

}  // namespace shardplan
