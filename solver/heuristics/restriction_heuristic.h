#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "solver/bounds/dual_bound.h"
#include "solver/core/work_meter.h"

namespace shardplan {

/// By value of the core: 1 for those of least excess cost after the bound's last pass, so many for each node on
/// average, and for the best of every node.
std::vector<std::uint8_t> promising_values(const CoreProblem& core, const DualBound& dual, double values_per_node);

/// A choice, and the largest share of the values that elimination could handle of those tried.
struct RestrictedChoice {
  CoreChoice choice;
  std::size_t share = 0;
};

/// The cheapest choice at the bound's prices among the most promising values (least excess cost after the bound's
/// last pass), as many of them as elimination can handle. Where decoding goes wrong on cycles, this is exact on the
/// remaining values. Memory limits enter only through their prices. Nothing if even few values are too many.
///
/// Shares larger than `first_share` are not tried: they were too many before, and a few passes later hardly fewer.
std::optional<RestrictedChoice> restriction_heuristic(const CoreProblem& core, const DualBound& dual, WorkMeter& meter,
                                                      std::size_t first_share = 0);

}  // namespace shardplan
