#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "layouts/price_list.h"
#include "layouts/redistribution_graph.h"

namespace shardplan {

/// What the way from a state to one target costs at least, so that a search looks towards the target first (A*).
///
/// The states are told apart only by which pieces cut the tensor and which are partial, not by where they stand: all
/// exchanges within the tensor are then free, and the shortest ways between these few sets (27 for three pieces) are
/// exact lower bounds. They are consistent: no step is cheaper than what it takes off the bound. Where a search is done
/// with such bounds, it finds the same path as without.
class LowerBounds {
 public:
  /// Only over sets with at least so many shards. Zero everywhere if the graph has two charts or too many sets.
  LowerBounds(RedistributionGraph& graph, PriceList& prices, std::uint32_t target, std::int64_t least_shards);

  static constexpr Picoseconds kNoWay = INT64_MAX;
  Picoseconds of(std::uint32_t state) const;

 private:
  using Pieces = std::uint32_t;  // one bit each
  struct Sets {
    Pieces cutting = 0;
    Pieces partial = 0;
  };
  Sets sets_of(std::uint32_t state) const;
  std::size_t position(const Sets& sets) const { return sets.cutting | sets.partial << num_pieces_; }
  Picoseconds price(CollectiveKind kind, Pieces pieces, std::int64_t divisor);
  const std::vector<Picoseconds>& least_permutes(std::int64_t shards);
  void find_all(std::uint32_t target);

  RedistributionGraph& graph_;
  PriceList& prices_;
  std::int64_t least_shards_;
  std::size_t num_pieces_ = 0;
  std::vector<std::int64_t> sizes_;                            // product of every set of pieces; empty: no bounds
  std::vector<Picoseconds> bounds_;                            // by position
  std::map<std::int64_t, std::vector<Picoseconds>> permutes_;  // by shards and set
};

}  // namespace shardplan
