#pragma once

#include <algorithm>
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

/// When a search replaces its core by the smaller one that fixing leaves: the largest number of matrix entries, and
/// the share of the gap that the bound must gain between two checks before other engines take their turn.
inline constexpr std::size_t kMostCoreEntries = std::size_t{1} << 23;
inline constexpr double kStandsStill = 0.02;

/// How a core is searched, and for how long. Costs are the core's, without the constant that presolve took out.
struct CoreSearchOptions {
  int threads = 1;
  std::uint64_t seed = 0;
  std::uint64_t work = 0;                       // of all threads together; 0: no limit
  std::vector<CoreChoice> starts;               // need not be feasible
  std::optional<DualBound::State> first_bound;  // to continue from
  struct GoodEnough {
    std::uint64_t work = 0;  // from this much work on
    double gap = 0;          // a share of the bound; a cost at most this far above it ends the search
  };
  std::vector<GoodEnough> good_enough;
  /// Work is limited, but branch and bound takes part if the limit affords some hundred subproblems, and then gets
  /// most of it.
  std::uint64_t exact_work = 0;
  GoodEnough give_up;        // with work above 0: after it the portfolio ends if the gap is above this one
  double constant_cost = 0;  // the cost of the problem outside the core; gaps are shares of the sum
  /// Of the best choice known outside, which need not be one of the core: presolve may have left only better ones.
  double known_cost = kInfinity;
  bool is_exact = true;        // whether branch and bound takes part if a pass is cheap
  bool has_bound = true;       // false: neighbourhood searches only
  bool eliminates = true;      // whether `search_without_limits` may eliminate
  bool searches_parts = true;  // whether promising parts of the core are searched by themselves
  /// May be empty. A null choice: only the bound has improved.
  std::function<void(const CoreChoice* choice, double cost, double bound)> progress;

  /// Whether a choice with this cost is good enough after this much work.
  bool is_good_enough(double cost, double bound, std::uint64_t done) const {
    return std::any_of(good_enough.begin(), good_enough.end(), [&](const GoodEnough& one) {
      return done >= one.work && cost - bound <= one.gap * std::max(constant_cost + bound, 0.0);
    });
  }
  /// Whether the search has done its work and is so far from its bound that it gives up. Without a choice it
  /// continues.
  bool gives_up(double cost, double bound, std::uint64_t done) const {
    return give_up.work > 0 && done >= give_up.work && cost < kInfinity &&
           cost - bound > give_up.gap * std::max(constant_cost + bound, 0.0);
  }
  /// For a search that continues one that has done this much work.
  void count_as_done(std::uint64_t done) {
    for (GoodEnough& one : good_enough) one.work -= std::min(one.work, done);
    exact_work -= std::min(exact_work, done);
    if (give_up.work > 0) give_up.work = std::max<std::uint64_t>(give_up.work - std::min(give_up.work, done), 1);
  }
};

struct CoreSearchResult {
  std::optional<CoreChoice> choice;  // the best one found
  double cost = 0;
  double bound = 0;                 // lower bound over feasible choices
  bool is_complete = false;         // the choice is optimal, or none is feasible
  std::optional<Limit> stopped_by;  // nothing if `is_complete`
  std::string found_by;
  double seconds_to_best = 0;
  std::uint64_t work = 0;
  std::vector<StageStatistics> statistics;
};

/// `search_without_limits` or `search_with_portfolio`.
using CoreSearch = CoreSearchResult (*)(const CoreProblem&, const CoreSearchOptions&, const Deadline&);

}  // namespace shardplan
