#pragma once

#include <cstddef>
#include <optional>

#include "solver/bounds/dual_bound.h"
#include "solver/core/work_meter.h"

namespace shardplan {

/// A choice, and which share of the values elimination could take: of those that are tried, counted from the largest.
struct RestrictedChoice {
  CoreChoice choice;
  std::size_t share = 0;
};

/// The cheapest choice at the bound's prices among the values that it likes best (least excess cost after its last
/// pass), as many of them as elimination can take. Where decoding goes astray on cycles, this is exact on what is left
/// of them. Limits are not looked at but for their prices. Nothing if even few values are too many.
///
/// Shares larger than `first_share` are not tried: they were too many before, and hardly fewer passes later.
std::optional<RestrictedChoice> restriction_heuristic(const CoreProblem& core, const DualBound& dual, WorkMeter& meter,
                                                      std::size_t first_share = 0);

}  // namespace shardplan
