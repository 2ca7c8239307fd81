#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// What `best_mixture` counts add up to at most.
inline constexpr std::int64_t kMixtureWhole = std::int64_t{1} << 20;

/// How often each of several sums counts in the mean that is largest at the choice that makes it least: `sums` are by sum
/// and choice, none below 0, every choice has one above 0. The value of a matrix game, by the simplex method.
std::vector<std::int64_t> best_mixture(const std::vector<std::vector<Picoseconds>>& sums);

}  // namespace shardplan
