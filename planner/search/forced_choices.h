#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/search/level_search.h"

namespace shardplan {

/// The best choices of a level with the first, second, ... strategy of one node forced in turn; nothing where there is
/// none, or where `options.limits.stop` came first. `starts` has for each a known choice to begin with, if there is one.
/// Each is a search of its own, so they run side by side
/// on all of the machine's cores; what is found does not depend on how many there are.
std::vector<std::optional<Choice>> forced_choices(const StrategyProblem& problem, NodeId node,
                                                  const std::vector<std::optional<Choice>>& starts,
                                                  const LevelOptions& options);

}  // namespace shardplan
