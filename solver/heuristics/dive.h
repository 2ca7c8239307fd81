#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/bounds/dual_bound.h"
#include "solver/core/work_meter.h"

namespace shardplan {

/// Removes values that do not fit even if every node takes the least bytes of its remaining values, until none is left
/// to remove. False if limits cannot hold or a node loses all values.
bool propagate_memory(const CoreProblem& core, std::vector<std::uint8_t>& alive);

/// Rounds a bound to a choice: runs a few passes, removes the share `rate` of the values with the largest excess cost
/// and what no longer fits, until every node has one value; then repairs and descends. `dual` ends with few values
/// alive. Nothing if limits are violated in the end. `target` as in `DualBound::iterate`; every value whose bound
/// reaches it is removed too.
std::optional<CoreChoice> dive(const CoreProblem& core, DualBound& dual, double target, double rate, int passes,
                               const DualBound::Steps& steps, WorkMeter& meter);

}  // namespace shardplan
