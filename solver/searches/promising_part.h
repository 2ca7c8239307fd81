#pragma once

#include <cstdint>
#include <optional>

#include "solver/bounds/dual_bound.h"
#include "solver/limits.h"
#include "solver/searches/core_search.h"

namespace shardplan {

/// Searches the part of a core that its bound makes likely to hold better choices: the `promising_values`, those of
/// `best`, and those of the choice that the bound decodes. `search` begins there with the bound's messages and prices,
/// runs on one thread and ends after `work` or once it has a choice within `kPartGap` of the best one in the part. Its
/// result is in terms of the core, no worse than `best` if that is feasible; its bound is the part's alone. Nothing if
/// the part would hardly be smaller than the core.
///
/// Relaxation induced neighbourhoods (Danna, Rothberg, Le Pape, Mathematical Programming 102, 2005) fix what the best
/// choice and a relaxation agree on; with the bound's reduced costs at hand, this keeps the likely alternatives, too.
std::optional<CoreSearchResult> search_promising_part(const CoreProblem& core, const DualBound& dual,
                                                      const CoreChoice& best, double values_per_node,
                                                      const CoreSearchOptions& options, std::uint64_t work,
                                                      const Deadline& deadline, CoreSearch search);
inline constexpr double kPartGap = 1e-7;

}  // namespace shardplan
