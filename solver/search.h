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
  kOptimal,      // the choice is proven to be optimal
  kFeasible,     // a feasible choice, perhaps not optimal
  kInfeasible,   // proven: no choice is feasible
  kNoPlanFound,  // none found within the limits; one may exist
};
std::string_view to_string(PlanStatus status);
inline bool is_found(PlanStatus status) { return status == PlanStatus::kOptimal || status == PlanStatus::kFeasible; }

/// Reported whenever the best cost or the bound improves, and at the end of every stage that runs only once. Costs
/// and bounds are values of the objective: weighted picoseconds.
struct SearchProgress {
  std::optional<std::int64_t> cost;  // cost of the best choice so far, if there is one
  std::int64_t lower_bound = 0;
  const StageStatistics* stage = nullptr;  // the stage that ended, if any
};

/// When to stop. The work limit is deterministic; the time limit only cuts a search short.
struct SearchLimits {
  double seconds = 0;      // wall clock for the whole call; 0: no limit
  std::uint64_t work = 0;  // units of work (deterministic); 0: no limit
  double gap = 0;          // stop at this gap, (cost - bound) / bound
  // For `auto` with a work limit: how good is good enough depends on the work done.
  std::uint64_t early_work = 0;    // after this much work ...
  double early_gap = 0;            // ... this gap suffices
  std::uint64_t passes = 0;        // after `work`, continue for this many passes of the bound ...
  double loose_gap = 0;            // ... until this gap suffices
  std::uint64_t exact_work = 0;    // above 0: where branch and bound pays off, this much work until then
  std::uint64_t give_up_work = 0;  // above 0: where memory is binding, end after this much work ...
  double give_up_gap = 0;          // ... if the gap is above this; the caller then tries something else
  std::stop_token stop;            // Ctrl-C: return the best answer so far
  std::function<void(const SearchProgress&)> progress;  // may be empty; called from the caller's thread
};

struct SearchOptions {
  Objective objective;
  std::uint64_t seed = 0;
  int threads = 1;
  std::optional<Choice> start;  // a known choice to start from, feasible or not
  bool memory_binds = false;    // for `auto`: the limits are near the least peak, so that no search without them pays
  SearchLimits limits;
};

/// The answer of a search. Costs and bounds are values of the objective for the original problem: weighted
/// picoseconds.
struct PlanResult {
  PlanStatus status = PlanStatus::kNoPlanFound;
  std::optional<Choice> choice;     // set exactly when status is kOptimal or kFeasible
  std::int64_t cost = 0;            // what `evaluate` returns for `choice`
  std::int64_t lower_bound = 0;     // certified: no feasible choice has a smaller value
  std::optional<Limit> stopped_by;  // nothing if the answer is proven, or the search ended by itself without a proof
  std::string obstacle;             // without an answer: why the search ended by itself, if not for a reason above
  std::string found_by;             // the stage that found `choice`
  double seconds_to_best = 0;       // wall clock: for standard error only
  std::vector<StageStatistics> statistics;
};

/// A search method. Every search obeys the same contract (tests/solver/search_contract_test.cc): the choice is
/// feasible and has the stated cost, the bound is valid, "optimal" and "infeasible" are proven, `stopped_by` names a
/// limit that was set and reached, and equal input and options give equal results unless a time limit or stop ended
/// the search. `searches/search_list.h` lists all searches.
class Search {
 public:
  virtual ~Search() = default;
  virtual PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const = 0;
};

}  // namespace shardplan
