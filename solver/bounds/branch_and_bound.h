#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "solver/bounds/dual_bound.h"
#include "solver/core/work_meter.h"

namespace shardplan {

/// Exact search of a core. A subproblem is the core with some values removed. It is bounded starting from its
/// parent's bound, loses the values whose bound exceeds the best known cost and those that no longer fit, and is
/// split in two: by the price of the bytes where near-optimal values disagree most about it, else the best value
/// against the rest. If few values are left, a subproblem and its children become separate, smaller cores with
/// shorter passes.
///
/// Subproblems are processed in batches, so that several threads may take one each and the outcome does not depend on
/// who was first: `take` a batch, `process` each (any thread), `put` all back in order.
class BranchAndBound {
 public:
  /// Doubles in saved states and cores. Beyond this, subproblems continue from their parent's prices with the root's
  /// messages.
  static constexpr std::size_t kMostStored = std::size_t{32} << 20;

  BranchAndBound(const CoreProblem& core, const DualBound& root, std::size_t most_stored = kMostStored);

  struct Subproblem {
    double bound = 0;
    std::size_t depth = 0;
    std::shared_ptr<const RestrictedCore> part;     // the core it belongs to; null: the full core
    std::shared_ptr<const DualBound::State> state;  // a state of that core; null: start from the root's ...
    std::vector<std::pair<std::uint32_t, double>>
        prices{};                     // ... with these prices by time, where above 0; none: the root's
    std::vector<std::uint8_t> alive;  // by value of that core
    std::uint64_t number = 0;         // assigned when it is put back: the order of all
  };
  struct Outcome {
    std::vector<Subproblem> parts;     // empty: it contains nothing better
    std::optional<CoreChoice> choice;  // a feasible choice that was found
    double cost = 0;
  };

  bool is_empty() const { return open_.empty(); }
  /// A lower bound on the cost of all choices except `best_cost` and those in subproblems being processed.
  double bound() const { return open_.empty() ? best_cost_ : open_.begin()->first.first; }
  void set_best_cost(double cost);
  /// The open subproblems with the least bounds, at most `count`; valid until the next change.
  std::vector<const Subproblem*> most_promising(std::size_t count) const;
  /// Where the passes of a subproblem start: from its parent's state, or from the root's messages at its parent's
  /// prices.
  std::shared_ptr<const DualBound::State> start_of(const Subproblem& subproblem) const;
  std::vector<Subproblem> take(std::size_t count);
  /// `dual` is the thread's own workspace, a bound of the whole core.
  Outcome process(Subproblem subproblem, DualBound& dual, double best_cost, WorkMeter& meter) const;
  void put(Outcome outcome);

  std::uint64_t num_processed() const { return num_processed_; }
  std::size_t num_open() const { return open_.size(); }

 private:
  void insert(Subproblem subproblem);
  /// Keeps the state only if it is small.
  void let_go_of_state(Subproblem& subproblem) const;
  /// The same subproblem on a smaller core, if building that pays off.
  void make_smaller(Subproblem& subproblem, WorkMeter& meter) const;
  std::vector<std::uint8_t> alive_in_whole(const Subproblem& subproblem) const;
  const CoreProblem& core_of(const Subproblem& subproblem) const {
    return subproblem.part ? subproblem.part->core : *core_;
  }
  std::vector<Subproblem> split(const Subproblem& subproblem, const DualBound& dual, double best_cost) const;

  const CoreProblem* core_;
  DualBound::State root_;
  std::size_t most_stored_;
  double best_cost_;
  std::map<std::pair<double, std::uint64_t>, Subproblem> open_;  // by bound, then age
  std::uint64_t num_inserted_ = 0;
  std::uint64_t num_processed_ = 0;
  std::size_t stored_ = 0;  // doubles in stored states and cores
};

}  // namespace shardplan
