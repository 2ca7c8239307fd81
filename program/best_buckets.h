#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// One of the collectives that run one after the other on a link.
struct WaitingCollective {
  Picoseconds ready = 0;  // when its input is ready; ascending
  Bytes bytes = 0;
  Picoseconds tail = 0;  // time from its end to the end of the step: the kernels from its first reader on
};

/// How to split a sequence of collectives into buckets of consecutive ones so that the step ends earliest: the
/// positions at which buckets begin, ascending from 0.
///
/// Buckets run in order on the link: a bucket starts when the link is free and its last member is ready, and takes
/// `time(bytes)`, which must not decrease with the bytes. The step ends at the maximum over collectives of (end of
/// its bucket + tail). Of equal solutions the one that frees the link first is taken, then the one with the fewest
/// buckets.
///
/// Dynamic programming: for each prefix it keeps the Pareto-optimal pairs (end of the link's work, end of the step).
/// Exact, except that a bucket that takes a thousand times as long as one byte is not extended: splitting a longer
/// one costs a thousandth of its time. So the work is the number of collectives times the number that share such a
/// bucket, however many wait for a busy link.
std::vector<std::size_t> best_buckets(std::span<const WaitingCollective> collectives,
                                      const std::function<Picoseconds(Bytes)>& time);

}  // namespace shardplan
