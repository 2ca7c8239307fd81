#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "solver/limits.h"
#include "solver/stage_statistics.h"
#include "solver/strategy_problem.h"

namespace shardplan {

enum class PlanStatus {
  kOptimal,      // the choice is proven to be the cheapest
  kFeasible,     // a choice, perhaps not the cheapest
  kInfeasible,   // proven: there is no feasible choice
  kNoPlanFound,  // none found within the limits; there may be one
};
std::string_view to_string(PlanStatus status);

/// Reported whenever the best cost or the bound improves, and when a stage has ended that runs but once. Costs and
/// bounds are values of the objective: weighted picoseconds.
struct SearchProgress {
  std::optional<std::int64_t> cost;  // the best choice's so far, if there is one
  std::int64_t lower_bound = 0;
  const StageStatistics* stage = nullptr;  // the one that ended, if any
};

/// When to stop. Work decides what is found; time only when it ends.
struct SearchLimits {
  double seconds = 0;      // wall clock for the whole call; 0: no limit
  std::uint64_t work = 0;  // units of work (deterministic); 0: no limit
  double gap = 0;          // (cost - bound) / bound that is good enough to stop at
  // `auto`, where work is limited: what is good enough depends on what was done.
  std::uint64_t early_work = 0;                         // after so much ...
  double early_gap = 0;                                 // ... this gap will do
  std::uint64_t passes = 0;                             // after `work` it goes on for this many passes of the bound ...
  double loose_gap = 0;                                 // ... until this gap will do
  std::uint64_t exact_work = 0;                         // above 0: where branch and bound pays, so much until then
  std::uint64_t give_up_work = 0;                       // above 0: where memory binds it ends after so much ...
  double give_up_gap = 0;                               // ... if the gap is above this: the caller tries otherwise
  std::stop_token stop;                                 // Ctrl-C: return the best so far
  std::function<void(const SearchProgress&)> progress;  // may be empty; called from the caller's thread
};

struct SearchOptions {
  Objective objective;
  std::uint64_t seed = 0;
  int threads = 1;
  std::optional<Choice> start;  // a known choice to begin with, feasible or not
  SearchLimits limits;
};

/// The answer of a search. Costs and bounds are values of the objective on the original problem: weighted picoseconds.
struct PlanResult {
  PlanStatus status = PlanStatus::kNoPlanFound;
  std::optional<Choice> choice;     // set exactly when status is kOptimal or kFeasible
  std::int64_t cost = 0;            // what `evaluate` gives for `choice`
  std::int64_t lower_bound = 0;     // no feasible choice has a smaller value; certified
  std::optional<Limit> stopped_by;  // nothing if the answer is proven, or the search came to its own end without proof
  std::string found_by;             // the stage that found `choice`
  double seconds_to_best = 0;       // wall clock: for standard error only
  std::vector<StageStatistics> statistics;
};

/// One way to search. Every search obeys the same contract (tests/solver/search_contract_test.cc): the choice is
/// feasible and costs what is claimed, the bound is a bound, "optimal" and "infeasible" are true, `stopped_by` names a
/// limit that was set and was reached, equal input and options give equal results unless a time limit or stop ended the
/// search. `searches/search_list.h` names them all.
class Search {
 public:
  virtual ~Search() = default;
  virtual PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const = 0;
};

}  // namespace shardplan
