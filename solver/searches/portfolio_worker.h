#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "solver/bounds/branch_and_bound.h"
#include "solver/bounds/dual_bound.h"
#include "solver/core/move_state.h"
#include "solver/core/work_meter.h"
#include "solver/heuristics/block_neighbourhood.h"
#include "solver/heuristics/tree_neighbourhood.h"
#include "solver/searches/core_search.h"
#include "solver/searches/portfolio_schedule.h"
#include "solver/searches/subproblems_ahead.h"

namespace shardplan {

/// A choice with its cost, and the engine that found it.
struct FoundChoice {
  std::optional<CoreChoice> choice;
  double cost = std::numeric_limits<double>::infinity();
  Engine by = Engine::kBound;
};

/// What all threads know; it changes only between epochs.
struct PortfolioKnowledge {
  FoundChoice best;
  double known_cost = kInfinity;  // `CoreSearchOptions::known_cost`
  double bound = -std::numeric_limits<double>::infinity();
  std::vector<double> prices;  // by time
  double priced_bound =
      -std::numeric_limits<double>::infinity();  // with these prices; that of branch and bound may be higher

  /// Infinite if none is known.
  double best_cost() const { return std::min(best.cost, known_cost); }
  /// The value that subproblems must stay below.
  double best_cost(const CoreProblem& core) const { return std::min(best.cost, core.big_m); }
  bool is_proven() const { return best.choice && bound > best.cost - 1; }
  /// The target for updating prices: the best cost, or a little above the bound as long as none is known. Without
  /// either there is none yet (infinite).
  double target() const;
};

/// The state that a portfolio thread keeps from epoch to epoch, and the engines that work on it. Engines read the
/// shared knowledge and change only their worker, so threads share nothing that changes and the outcome does not
/// depend on which one is faster. `work` is in units of `WorkMeter`.
class PortfolioWorker {
 public:
  PortfolioWorker(const CoreProblem& core, const Deadline& deadline, int thread);

  /// Repairs and improves each of the choices, in order.
  void improve(std::span<const CoreChoice> choices, std::uint64_t work);
  /// Passes of the worker's own bound; decoded choices are repaired and improved on the way.
  void run_bound(const PortfolioKnowledge& known, std::uint64_t work) { run_bound(known, steps_, work); }
  /// Passes of a bound started from scratch, which becomes the worker's own if it gets higher; continues in later
  /// epochs until its steps are short.
  void run_fresh_bound(const PortfolioKnowledge& known, std::uint64_t work);
  void run_dive(const PortfolioKnowledge& known, Random& random, std::uint64_t work);
  /// A dive that starts from a subproblem of branch and bound.
  void run_dive(const BranchAndBound& exact, const BranchAndBound::Subproblem& subproblem,
                const PortfolioKnowledge& known, Random& random, std::uint64_t work);
  /// The search of a promising part of the core, of random size. Requires a best choice.
  void run_part(const PortfolioKnowledge& known, const CoreSearchOptions& options, CoreSearch search, Random& random,
                std::uint64_t work);
  /// Tree or block neighbourhoods of the best choice; without one, repairs of random choices.
  void run_neighbourhood(Engine engine, const PortfolioKnowledge& known, Random& random, std::uint64_t work);
  /// Subproblems of branch and bound, see `take_outcomes`.
  void run_exact(SubproblemsAhead& ahead, const PortfolioKnowledge& known,
                 std::vector<BranchAndBound::Subproblem> batch);

  /// Continues from another worker's better prices if its own bound is far behind, and with other steps if its own
  /// have become short.
  void follow_prices(const PortfolioKnowledge& known);

  /// The results since the last exchange; reset once taken.
  FoundChoice take_found() { return std::exchange(found_, {}); }
  std::uint64_t take_used() { return std::exchange(used_, 0); }
  std::vector<BranchAndBound::Outcome> take_outcomes() { return std::exchange(outcomes_, {}); }

  DualBound& dual() { return dual_; }
  const DualBound& dual() const { return dual_; }
  const BlockNeighbourhood& blocks() const { return blocks_; }

 private:
  void offer(Engine by);
  /// Dives at random rates; `part`: the core that the bound is of, null: the full core.
  void dive_from(DualBound& start, const RestrictedCore* part, const PortfolioKnowledge& known, Random& random,
                 std::uint64_t work);
  void run_bound(const PortfolioKnowledge& known, const DualBound::Steps& steps, std::uint64_t work);
  void run_trees(const PortfolioKnowledge& known, Random& random, WorkMeter& meter, std::uint64_t work);

  const CoreProblem* core_;
  const Deadline* deadline_;
  DualBound dual_;
  MoveState state_;
  TreeNeighbourhood trees_;
  BlockNeighbourhood blocks_;
  DualBound::Steps steps_;
  std::size_t setting_ = 0;             // the step rule in use
  std::uint64_t next_decode_ = 0;       // pass
  std::optional<DualBound> part_dual_;  // for subproblems
  std::optional<DualBound> fresh_;      // see run_fresh_bound
  std::size_t fresh_setting_ = 0;
  std::uint64_t next_fresh_decode_ = 0;
  FoundChoice found_;
  std::uint64_t used_ = 0;
  std::vector<BranchAndBound::Outcome> outcomes_;
};

}  // namespace shardplan
