#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace shardplan {

/// Which times of a schedule that repeats itself say all about its memory.
///
/// Let the bytes in use change at time t by `change[t]`, some linear function of the choice. Where the changes repeat with
/// period p, the bytes at t - p, t and t + p are in arithmetic progression whatever the choice: t holds no more than the
/// fuller of the two others. Of a stretch that repeats itself, its first and its last period therefore hold the most, and
/// under equal limits the times between them can be left out without making any choice feasible that is not:
///
///     change   a b c | d e | d e | d e | d e | f        period 2
///     kept     *  *  *   *  *                *  *   *
struct PeriodicTimes {
  std::vector<std::uint32_t> kept;  // increasing
  /// By time: two positions in `kept`. The bytes at the time are a mean of those at the two, weighted by how near they
  /// are, whatever the choice; both are the time itself where it is kept.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> between;
};

/// `changes` says by number which times have equal changes and equal limits. `periods` are tried in this order; others
/// are not found. Linear in the times for each period.
PeriodicTimes periodic_times(std::span<const std::uint32_t> changes, std::span<const std::uint32_t> periods);

}  // namespace shardplan
