#pragma once

#include <optional>

#include "solver/bounds/dual_bound.h"
#include "solver/core/work_meter.h"

namespace shardplan {

/// The cheapest choice at the bound's prices among the values that it likes best (least excess cost after its last
/// pass), as many of them as elimination can take. Where decoding goes astray on cycles, this is exact on what is left
/// of them. Limits are not looked at but for their prices. Nothing if even few values are too many.
std::optional<CoreChoice> restriction_heuristic(const CoreProblem& core, const DualBound& dual, WorkMeter& meter);

}  // namespace shardplan
