#pragma once

#include <cstdint>
#include <optional>

#include "layouts/redistribution/search/shortest_paths.h"

namespace shardplan {

/// Some path within the bound, found soon rather than cheap: greedy best-first search, which continues from the state of
/// least remaining cost, and of those from the one with the fewest pieces that do not yet stand where they end. Nothing
/// if there is no path, or `bound.most_settled` states did not lead to the target.
std::optional<Path> best_first_path(RedistributionGraph& graph, EdgeCosts& costs, std::uint32_t source,
                                    std::uint32_t target, const PathBound& bound);

}  // namespace shardplan
