#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shardplan {

/// Which times of a periodic schedule suffice to check its memory.
///
/// Let the bytes in use change at time t by `change[t]`, some linear function of the choice. Where the changes repeat
/// with period p, the bytes at t - p, t and t + p are in arithmetic progression for every choice, so t holds no more
/// than the fuller of the two others. So of a repeating stretch the first and the last period hold the most, and
/// under equal limits the times between can be omitted without making an infeasible choice feasible:
///
///     change   a b c | d e | d e | d e | d e | f        period 2
///     kept     *  *  *   *  *                *  *   *
struct PeriodicTimes {
  std::vector<std::uint32_t> kept;  // increasing
  /// By time: two positions in `kept`. For any choice the bytes at the time are a mean of the bytes at the two,
  /// weighted by how near they are; both are the time itself if it is kept.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> between;
};

/// `changes` numbers the times such that equal numbers have equal changes and equal limits. Only the given `periods`
/// are tried, in this order. Linear in the number of times for each period.
PeriodicTimes periodic_times(std::span<const std::uint32_t> changes, std::span<const std::uint32_t> periods);

}  // namespace shardplan
