#pragma once

#include <cstdint>
#include <vector>

#include "solver/core/core_problem.h"

namespace shardplan {

/// Removes values that do not fit even if every node takes the least bytes of its remaining values, until none is left
/// to remove. `alive` has a 1 for each remaining value of the core, by value. False if the limits cannot hold or a node
/// loses all its values; `alive` is then of no use.
bool propagate_memory(const CoreProblem& core, std::vector<std::uint8_t>& alive);

}  // namespace shardplan
