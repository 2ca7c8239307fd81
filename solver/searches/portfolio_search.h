#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "solver/bounds/dual_bound.h"
#include "solver/core/core_problem.h"
#include "solver/core/work_meter.h"
#include "solver/search.h"

namespace shardplan {

/// What a core is searched with and for how long.
struct CoreSearchOptions {
  int threads = 1;
  std::uint64_t seed = 0;
  std::uint64_t work = 0;                       // of all threads together; 0: no limit
  std::vector<CoreChoice> starts;               // need not be feasible
  std::optional<DualBound::State> first_bound;  // to go on from
  double gap_tolerance = 0;                     // a cost that is at most this far above the bound ends the search
  bool is_exact = true;                         // whether branch and bound takes part where a pass is cheap
  bool has_bound = true;                        // false: local moves only
  bool eliminates = true;                       // whether `search_without_limits` may eliminate
  std::function<void(const CoreChoice*, double cost, double bound)>
      progress;  // a null choice: only the bound is better
};

struct CoreSearchResult {
  std::optional<CoreChoice> choice;  // the best that was found
  double cost = 0;
  double bound = 0;          // no feasible choice costs less
  bool is_complete = false;  // the choice is optimal, or there is none
  std::string found_by;
  double seconds_to_best = 0;
  std::uint64_t work = 0;
  std::vector<StageStatistics> statistics;
};

/// Searches a core by `search_without_limits` if it has no memory limits, else `search_with_portfolio`. Equal options and seed
/// give equal results unless the deadline ends the search.
CoreSearchResult search_core(const CoreProblem& core, const CoreSearchOptions& options, const Deadline& deadline);

/// The general means, with several threads in epochs of fixed work: at the end of each, choices, bounds and prices are
/// exchanged in a fixed order.
///
///   start    least memory, or the given choice; repaired and improved node by node
///   bound    message passing with prices, each thread with steps of its own; decoded choices are repaired on the way
///   exact    branch and bound where a pass is cheap
///   dives, tree moves, block moves, and the bound again with the better target, in turns
CoreSearchResult search_with_portfolio(const CoreProblem& core, const CoreSearchOptions& options,
                                       const Deadline& deadline);

}  // namespace shardplan
