#pragma once

#include "solver/limits.h"
#include "solver/searches/core_search.h"

namespace shardplan {

/// A portfolio of engines (`portfolio_schedule.h`) on several threads, in epochs of fixed work: at the end of each,
/// choices, bounds and prices are exchanged in a fixed order, so that equal options give equal results on any machine.
///
///   start    the given choices and that of fewest bytes, repaired and improved node by node
///   bound    message passing with prices, each thread with steps of its own, until the bound hardly moves
///   rounds   what the schedule says: dives, tree and block neighbourhoods, bounds with the better target, or branch and
///            bound where a pass is cheap
///
/// Whenever the gap has closed by a third, values are fixed by reduced cost; if many go, the search continues on the
/// smaller core.
CoreSearchResult search_with_portfolio(const CoreProblem& core, const CoreSearchOptions& options,
                                       const Deadline& deadline);

}  // namespace shardplan
