#pragma once

#include <cstdint>
#include <optional>

#include "layouts/redistribution/search/shortest_paths.h"

namespace shardplan {

/// Some path within the bound, found quickly rather than cheap: greedy best-first search, which continues from the
/// state with the least remaining cost, and among those from the one with the fewest pieces in the wrong place. Nothing
/// if there is no path, or if `bound.most_settled` states, or those that the graph may have, did not lead to the target.
std::optional<Path> best_first_path(RedistributionGraph& graph, EdgeCosts& costs, std::uint32_t source,
                                    std::uint32_t target, const PathBound& bound);

}  // namespace shardplan
