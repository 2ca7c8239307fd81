#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "solver/bounds/dual_bound.h"
#include "solver/core/core_problem.h"
#include "solver/limits.h"
#include "solver/stage_statistics.h"

namespace shardplan {

/// When a search replaces its core by the smaller one that fixing leaves: the most entries that its matrices may have, and the
/// share of the gap that the bound must gain from one look to the next, or other means take their turn.
inline constexpr std::size_t kMostCoreEntries = std::size_t{1} << 23;
inline constexpr double kStandsStill = 0.02;

/// What a core is searched with and for how long. Costs are the core's: without what presolve took out.
struct CoreSearchOptions {
  int threads = 1;
  std::uint64_t seed = 0;
  std::uint64_t work = 0;                       // all threads together; 0: no limit
  std::vector<CoreChoice> starts;               // need not be feasible
  std::optional<DualBound::State> first_bound;  // to continue from
  double gap_tolerance = 0;  // absolute: a cost that is at most this far above the bound ends the search
  bool is_exact = true;      // whether branch and bound takes part where a pass is cheap
  bool has_bound = true;     // false: neighbourhood searches only
  bool eliminates = true;    // whether `search_without_limits` may eliminate
  /// May be empty. A null choice: only the bound is better.
  std::function<void(const CoreChoice* choice, double cost, double bound)> progress;
};

struct CoreSearchResult {
  std::optional<CoreChoice> choice;  // the best that was found
  double cost = 0;
  double bound = 0;                 // no feasible choice costs less
  bool is_complete = false;         // the choice is optimal, or there is none
  std::optional<Limit> stopped_by;  // nothing if it is complete
  std::string found_by;
  double seconds_to_best = 0;
  std::uint64_t work = 0;
  std::vector<StageStatistics> statistics;
};

}  // namespace shardplan
