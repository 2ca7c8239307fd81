#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/redistribution/search/shortest_paths.h"

namespace shardplan {

/// Some path within the bound, found soon rather than cheap: the search always goes on from the state that has least
/// ahead of it, by lower bounds and then by how many pieces do not yet stand where they end. Nothing if there is none,
/// or `bound.most_settled` states did not lead there.
std::optional<std::vector<ShortestPaths::Hop>> hasty_path(RedistributionGraph& graph, PriceList& prices,
                                                          std::uint32_t source, std::uint32_t target,
                                                          const PathBound& bound);

}  // namespace shardplan
