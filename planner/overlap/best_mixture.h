#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// What each side's counts of a mixture add up to at most.
inline constexpr std::int64_t kMixtureWhole = std::int64_t{1} << 20;

/// The mean of sums that is largest at the choice that makes it least, and the mean of choices of which the largest sum is
/// least: how often each counts.
struct Mixture {
  std::vector<std::int64_t> sums, choices;
};

/// `sums` are by sum and choice, none below 0, every choice has one above 0. A matrix game, by the simplex method.
Mixture best_mixture(const std::vector<std::vector<Picoseconds>>& sums);

}  // namespace shardplan
