#pragma once

#include <cstddef>
#include <cstdint>

// When the planner's searches end by default.

namespace shardplan {

/// By default a search ends after this much work, a second or two; the answer states its gap. (On the shipped models
/// five times as much work finds the same plans and closes the gap by another 0.2 % at most.)
inline constexpr std::uint64_t kDefaultWork = 2'000'000'000;
/// A search also ends as soon as no plan can be better by more than this fraction.
inline constexpr double kGoodEnough = 1e-6;
/// The bound over plans with free layers is computed along with a plan with uniform layers for graphs with at most
/// this many operators, which takes a fraction of a second.
inline constexpr std::size_t kMostFreeOperators = 5000;
/// The same where plans are only compared with each other.
inline constexpr double kGoodEnoughToCompare = 1e-3;

/// What redistributions hold while they run is searched at level 1 for models of at most so many operators; each
/// search then takes half a second at most.
inline constexpr std::size_t kMostWithRedistributions = 200;
inline constexpr std::uint64_t kWorkWithRedistributions = 500'000'000;

}  // namespace shardplan
