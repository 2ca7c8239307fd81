#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// The counts of each side of a mixture add up to at most this.
inline constexpr std::int64_t kMixtureWhole = std::int64_t{1} << 20;

/// Optimal mixed strategies of a matrix game, as counts per row and column: the mixture of `sums` whose least value
/// over all choices is largest, and the mixture of `choices` whose largest value over all sums is least.
struct Mixture {
  std::vector<std::int64_t> sums, choices;
};

/// Solves the game by the simplex method. `sums` is indexed by sum and choice; no entry is negative, and every choice
/// has a positive one.
Mixture best_mixture(const std::vector<std::vector<Picoseconds>>& sums);

/// How often each sum counts in a mixture that is nearly the best: fictitious play (Brown, 1951), in which each side in
/// turn answers what the other has played so far.
std::vector<std::int64_t> rough_mixture(const std::vector<std::vector<Picoseconds>>& sums);

}  // namespace shardplan
