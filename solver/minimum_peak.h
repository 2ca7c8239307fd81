#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/search.h"

namespace shardplan {

/// A bracket of the least uniform limit, in bytes, under which a problem has a feasible choice.
struct MinimumPeak {
  /// kOptimal: the bracket is closed; kInfeasible: no choice satisfies the given limits; kNoPlanFound: nothing was
  /// found.
  PlanStatus status = PlanStatus::kNoPlanFound;
  std::optional<Choice> choice;  // its peak is `feasible`; nothing if no choice satisfies the given limits
  Bytes feasible = 0;            // proven by `choice`
  Bytes infeasible = -1;  // proven: no choice has a peak of at most this; `feasible` is optimal if it is infeasible + 1
  std::optional<Limit> stopped_by;          // kGap: the bracket is within the tolerance
  std::vector<StageStatistics> statistics;  // of all searches
};

/// Lowers the limits of `problem` (those above the tried one; none is raised): first to what every choice holds, then
/// by bisection until the bracket is at most `tolerance_ppm` of its upper end. A limit is infeasible if the least
/// usages, presolve or an exhausted search prove it, and feasible if a choice is found; a limit that can be settled
/// neither way within its share of the work ends the bisection from below, and one more limit between it and the proven
/// ones is then tried to raise the bound. Each search starts from the last choice. `options.limits` are for all searches
/// together; costs are ignored.
MinimumPeak minimum_peak(const StrategyProblem& problem, const Search& search, const SearchOptions& options,
                         std::int64_t tolerance_ppm = 0);

}  // namespace shardplan
