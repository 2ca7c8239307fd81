#pragma once

#include <cstddef>
#include <cstdint>

// When a search of the planner ends where nothing else is asked.

namespace shardplan {

/// Where nothing else is asked for, a search ends after this much work, a second or two; the answer says how good it is.
/// (On the shipped models five times as much finds the same plans and closes the gap by another 0.2 % at most.)
inline constexpr std::uint64_t kDefaultWork = 2'000'000'000;
/// A search also ends as soon as no plan can be better by more than this share.
inline constexpr double kGoodEnough = 1e-6;
/// What layers that differ could gain is sought beside a plan of uniform layers for graphs of at most so many operators: in
/// a fraction of a second.
inline constexpr std::size_t kMostFreeOperators = 5000;
/// Where plans are only compared with each other.
inline constexpr double kGoodEnoughToCompare = 1e-3;

}  // namespace shardplan
