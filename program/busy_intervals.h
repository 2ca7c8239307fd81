#pragma once

#include <utility>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// When a stream that runs one instruction at a time is busy.
///
///     busy from 2 to 5 and from 9 to 10:    first_gap(0, 2) is 0, first_gap(1, 2) is 5, first_gap(4, 5) is 10
class BusyIntervals {
 public:
  /// The first time, not before `earliest`, at which the stream is free for `length`. Requires `length > 0`. Linear in
  /// the number of gaps after `earliest`.
  Picoseconds first_gap(Picoseconds earliest, Picoseconds length) const;
  /// Requires that the stream is free between `begin` and `end`.
  void add(Picoseconds begin, Picoseconds end);

 private:
  using Intervals = std::vector<std::pair<Picoseconds, Picoseconds>>;
  /// The first interval that ends after `time`.
  Intervals::const_iterator first_after(Picoseconds time) const;

  Intervals intervals_;  // ascending, with gaps between them
};

}  // namespace shardplan
