#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/search.h"

namespace shardplan {

/// The least uniform limit, in bytes, under which a problem has a choice: a bracket.
struct MinimumPeak {
  /// kOptimal: the bracket is closed; kInfeasible: the given limits cannot be held; kNoPlanFound: nothing was found.
  PlanStatus status = PlanStatus::kNoPlanFound;
  std::optional<Choice> choice;     // its peak is `feasible`; nothing if not even the given limits can be held
  Bytes feasible = 0;               // proven by `choice`
  Bytes infeasible = -1;            // no choice has a peak of this much or less; optimal if feasible == infeasible + 1
  std::optional<Limit> stopped_by;  // kGap: the bracket is within the tolerance
  std::vector<StageStatistics> statistics;  // all searches'
};

/// Lowers the limits of `problem` (those above the tried one; none is raised): first to what every choice holds, then
/// by bisection until the bracket is at most `tolerance_ppm` of its upper end. A limit is infeasible when the least
/// usages, presolve or an exhausted search prove it, feasible when any choice is found; one that can be settled neither
/// way within its share of the work ends the bisection from below. Each search starts from the last choice.
/// `options.limits` are for all searches together; costs do not matter.
MinimumPeak minimum_peak(const StrategyProblem& problem, const Search& search, const SearchOptions& options,
                         std::int64_t tolerance_ppm = 0);

}  // namespace shardplan
