#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// One of the collectives that run one after the other on one link.
struct WaitingCollective {
  Picoseconds ready = 0;  // when its input is there; ascends
  Bytes bytes = 0;
  Picoseconds tail = 0;  // what follows from its end to the end of the step: the kernels from its first reader on
};

/// How to cut a sequence of collectives into buckets of neighbours so that the step ends first: the positions at which
/// buckets begin, ascending, the first 0.
///
/// Buckets run in order on the link: one begins when the link is free and its last member ready, and takes
/// `time(bytes)`, which must not fall as bytes grow. The step ends when the last of (end of a collective + its tail)
/// has; of equal ends the one that frees the link first is taken, then the fewest buckets.
///
/// By dynamic programming: for each prefix the pairs (end of the link's work, end of the step) that no other pair beats in
/// both. Exact, but that a bucket which takes a thousand times as long as one byte grows no further: cutting a longer one
/// costs a thousandth of its time. So the work is the number of collectives times those that share such a bucket, however
/// many wait for a busy link.
std::vector<std::size_t> best_buckets(std::span<const WaitingCollective> collectives,
                                      const std::function<Picoseconds(Bytes)>& time);

}  // namespace shardplan
