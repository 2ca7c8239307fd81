#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/search/level_search.h"

namespace shardplan {

/// The best choices of a level with the first, second, ... strategy of one node forced in turn; nothing if there is
/// none, or if `options.limits.stop` came first. `starts` holds a known choice to start from for each, if there is
/// one. The searches are independent and run side by side on all cores; the result does not depend on their number.
std::vector<std::optional<Choice>> forced_choices(const StrategyProblem& problem, NodeId node,
                                                  const std::vector<std::optional<Choice>>& starts,
                                                  const LevelOptions& options);

}  // namespace shardplan
