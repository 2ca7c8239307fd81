#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "layouts/redistribution/search/edge_costs.h"
#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// What the way from a state to one target costs at least, so that a search looks towards the target first (A*).
///
/// The states are told apart only by which pieces cut the tensor and which are partial, not by where they stand: all
/// exchanges within the tensor are then free, and the shortest ways between these few sets (27 for three pieces) are
/// exact lower bounds. They are consistent: no step is cheaper than what it takes off the bound. Where a search is done
/// with such bounds, it finds the same path as without. Pieces that cannot move are left out. Where there are still too
/// many sets, partial pieces are taken for unused ones, and what may become partial for free may be gathered for free.
class LowerBounds {
 public:
  /// Only over sets with at least so many shards. Zero everywhere if there are too many sets all the same.
  LowerBounds(RedistributionGraph& graph, PriceList& prices, std::uint32_t target, std::int64_t least_shards);

  static constexpr Picoseconds kNoWay = INT64_MAX;
  Picoseconds of(std::uint32_t state) const { return bounds_.empty() ? 0 : bounds_[position(state)]; }

 private:
  using Pieces = std::uint32_t;  // one bit each
  struct Sets {
    Pieces cutting = 0;
    Pieces partial = 0;
  };
  /// The sets of one chart's pieces.
  struct Chart {
    std::vector<std::size_t> pieces;  // that move
    std::vector<std::int64_t> sizes;  // product of every set of pieces, times those that stay
    std::size_t first = 0;            // position of the empty sets
    /// Sets that a permute turns into each other, by shards and summands.
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Sets>> alike;
    std::map<std::int64_t, std::vector<Picoseconds>> permutes;  // by shards, by set

    Pieces all() const { return static_cast<Pieces>(sizes.size() - 1); }
    std::size_t position(const Sets& sets) const { return first + (sets.cutting | sets.partial << pieces.size()); }
  };
  struct Waiting {
    Picoseconds time;
    std::uint32_t chart;
    Sets sets;
    bool operator<(const Waiting& other) const { return time > other.time; }  // the heap gives the largest first
  };

  bool list_sets();
  void join_charts();
  std::size_t position(std::uint32_t state) const;
  void find_all(std::uint32_t target);
  void reach(std::uint32_t chart, const Sets& sets, Picoseconds time);
  void leave(std::uint32_t chart, const Sets& sets, Picoseconds time);
  Picoseconds price(std::uint32_t chart, CollectiveKind kind, Pieces pieces, std::int64_t divisor);
  const std::vector<Picoseconds>& least_permutes(std::uint32_t chart, std::int64_t shards);

  RedistributionGraph& graph_;
  PriceList& prices_;
  std::int64_t least_shards_;
  bool with_partial_ = false;  // told apart
  std::vector<Chart> charts_;
  std::vector<Picoseconds> bounds_;                      // by position
  std::vector<std::pair<std::uint32_t, Sets>> same_as_;  // by position: the same sets in the next chart, or itself
  std::vector<Waiting> waiting_;
};

}  // namespace shardplan
