#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// How large intermediate states between a and b may be: unlimited; no larger than a or b; or, if no path satisfies
/// that, as small as possible.
enum class LargestOnWay { kAny, kEnds, kLeast };

/// Least times between the states of a graph whose states have sizes: a row from one state to every other, or all of
/// them. Arcs are in one array and no paths are kept, since cost matrices need some million of these times.
class BoundedTimes {
 public:
  static constexpr Picoseconds kNoPath = INT64_MAX / 2;  // two of them can be added

  struct Arc {
    std::uint32_t target = 0;
    std::uint32_t cost = 0;  // position in the caller's list of costs
  };

  BoundedTimes() = default;
  /// `sizes`: by state. `arcs`: those of a state together, of state i from `first_arc[i]` to `first_arc[i + 1]`.
  BoundedTimes(std::vector<std::int64_t> sizes, std::vector<std::size_t> first_arc, std::vector<Arc> arcs);

  std::size_t num_states() const { return sizes_.size(); }
  /// The rank of a state among all, from the smallest to the largest.
  std::size_t place(std::uint32_t state) const { return place_[state]; }
  /// In an order of its own: the arcs of a state together, smallest targets first.
  std::span<const Arc> arcs() const { return arcs_; }

  /// From `source` to every state by number; kNoPath where no path counts. `times`: of `arcs()`.
  std::vector<Picoseconds> row(std::uint32_t source, std::span<const Picoseconds> times, LargestOnWay largest);
  /// From every state to every other: from a to b at place(a) * num_states() + place(b). Takes about as long as a
  /// sixteenth of the rows one by one.
  std::vector<Picoseconds> all(std::span<const Picoseconds> times, LargestOnWay largest) const;

 private:
  struct QueueEntry {
    Picoseconds time = 0;
    std::uint32_t state = 0;
    bool operator<(const QueueEntry& other) const { return time > other.time; }  // the heap gives the largest first
  };
  std::vector<Picoseconds> all_one_by_one(std::span<const Picoseconds> times, LargestOnWay largest) const;
  void settle(std::int64_t bound, std::span<const Picoseconds> times);
  void relax(std::uint32_t state, std::size_t arc, std::int64_t bound, std::span<const Picoseconds> times);

  std::vector<std::int64_t> sizes_;
  std::vector<std::uint32_t> place_;
  std::vector<std::int64_t> sorted_sizes_;
  std::vector<std::int64_t> bounds_;  // the different sizes, ascending
  std::vector<std::size_t> first_arc_;
  std::vector<Arc> arcs_;
  // The state of the search for one row:
  std::vector<Picoseconds> reached_;
  std::vector<std::size_t> next_arc_;  // by state, the first that leads above the bound
  std::vector<QueueEntry> queue_;
};

}  // namespace shardplan
