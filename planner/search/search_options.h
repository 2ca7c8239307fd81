#pragma once

#include <functional>
#include <stop_token>

#include "planner/level.h"
#include "planner/plan.h"
#include "planner/search/level_search.h"
#include "solver/search.h"

namespace shardplan {

/// How a plan with these options is searched: limits on work and time, required gap, seed and threads. The search gets
/// the time limit less the seconds `spent` since planning began and those `kept` for what follows it, but at least a
/// quarter of what is left.
LevelOptions search_options(const PlanOptions& options, Level level, std::stop_token stop,
                            const std::function<void(const SearchProgress&)>& progress, double spent = 0,
                            double kept = 0);

/// Seconds to keep for lowering, memory and scheduling if the problem was built in so many.
double after_search(double built);

/// Whether a search ends at the default limit of work: the user gave no limit, or only one of time that a second search
/// shares (`is_first`).
bool uses_default_work(const PlanOptions& options, bool is_first);

/// The limits of a search that only finds where a second one starts, for the overlapped step. It takes at most half of
/// a time limit, and no more work than without that limit, which would only prove a step without overlap.
SearchLimits limits_of_first(const PlanOptions& options, SearchLimits limits);

}  // namespace shardplan
