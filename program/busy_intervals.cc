#include "program/busy_intervals.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {
namespace {

/// Most instructions are placed near the end of the busy time: this many intervals there are searched linearly.
constexpr int kNearEnd = 8;

}  // namespace

BusyIntervals::Intervals::const_iterator BusyIntervals::first_after(Picoseconds time) const {
  auto first = intervals_.end();
  for (int i = 0; i < kNearEnd && first != intervals_.begin(); ++i) {
    if (std::prev(first)->second <= time) return first;
    --first;
  }
  return std::upper_bound(intervals_.begin(), first, time,
                          [](Picoseconds t, const auto& one) { return t < one.second; });
}

Picoseconds BusyIntervals::first_gap(Picoseconds earliest, Picoseconds length) const {
  Picoseconds begin = earliest;
  for (auto next = first_after(begin); next != intervals_.end() && next->first < begin + length; ++next) {
    begin = next->second;
  }
  return begin;
}

void BusyIntervals::add(Picoseconds begin, Picoseconds end) {
  const auto next = intervals_.begin() + (first_after(begin) - intervals_.cbegin());
  SHARDPLAN_CHECK(next == intervals_.end() || next->first >= end);
  const bool joins_next = next != intervals_.end() && next->first == end;
  if (next != intervals_.begin() && std::prev(next)->second == begin) {
    std::prev(next)->second = joins_next ? next->second : end;
    if (joins_next) intervals_.erase(next);
  } else if (joins_next) {
    next->first = begin;
  } else {
    intervals_.insert(next, {begin, end});
  }
}

}  // namespace shardplan
