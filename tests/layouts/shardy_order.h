#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layouts/collective.h"

namespace shardplan {

/// The cost of Shardy's order of steps, as an oracle that shares no code with the planner. On meshes of twos: slice
/// what is missing, permute so that each dimension begins as it should end, exchange what is in the wrong dimension,
/// gather the rest. Collectives that differ only in their axes are merged.
struct ShardyOrder {
  Picoseconds time = 0;
  std::int64_t least_shards = 1;  // of all intermediate layouts
};

/// `twos` are the mesh's axes, in pieces of size 2. Nothing may be partial.
ShardyOrder shardy_order(const TensorLayout& from, const TensorLayout& to, const std::vector<AxisRef>& twos,
                         Bytes tensor_bytes, const CollectiveCosts& costs);

/// How often, and by how much, a plan is faster than another one.
struct Wins {
  std::size_t pairs = 0;
  std::size_t wins = 0;
  double sum_of_ratios = 0;
  double largest_ratio = 1;
  std::size_t free = 0;  // at no cost, where the other has a cost

  void add(Picoseconds best, Picoseconds other);
  void add(const Wins& others);
  std::string text() const;
};

}  // namespace shardplan
