#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "layouts/redistribution/search/bounded_times.h"

namespace shardplan {

/// The rows of a BoundedTimes for one list of times, computed on demand: one by one, or all together if that takes no
/// longer.
class BoundedRows {
 public:
  /// From `source` to every state by its place; kNoPath where no path counts. Valid until another source is requested.
  /// The graph, its times and which paths count must not change until `clear`.
  std::span<const Picoseconds> row(BoundedTimes& graph, std::span<const Picoseconds> times, LargestOnWay largest,
                                   std::uint32_t source) {
    expect(graph, times, largest, single_.contains(source) ? 0 : 1);
    return known_row(graph, times, largest, source);
  }
  /// The rows of several sources, valid at the same time.
  std::vector<std::span<const Picoseconds>> rows(BoundedTimes& graph, std::span<const Picoseconds> times,
                                                 LargestOnWay largest, const std::vector<std::uint32_t>& sources);
  /// Frees all rows.
  void clear();

 private:
  void expect(const BoundedTimes& graph, std::span<const Picoseconds> times, LargestOnWay largest, std::size_t more);
  std::span<const Picoseconds> known_row(BoundedTimes& graph, std::span<const Picoseconds> times, LargestOnWay largest,
                                         std::uint32_t source);

  std::vector<Picoseconds> all_;  // rows by place; empty as long as few were asked for
  std::unordered_map<std::uint32_t, std::vector<Picoseconds>> single_;
};

}  // namespace shardplan
