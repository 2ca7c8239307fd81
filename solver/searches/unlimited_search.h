#pragma once

#include "solver/limits.h"
#include "solver/searches/core_search.h"

namespace shardplan {

/// Searches a core without memory limits, in the order of what it costs:
///
///   elimination      exact where its tables are small
///   bound            message passing; what it decodes is improved node by node
///   fixing           values that reduced costs show to be in no better choice are removed: the core shrinks, passes
///                    become cheaper, and elimination is tried again
///
/// What is left when the bound stops rising is for `search_with_portfolio`.
CoreSearchResult search_without_limits(const CoreProblem& core, const CoreSearchOptions& options,
                                       const Deadline& deadline);

}  // namespace shardplan
