#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "solver/bounds/branch_and_bound.h"
#include "solver/bounds/dual_bound.h"
#include "solver/limits.h"

namespace shardplan {

/// Subproblems of branch and bound that idle processors process before it is their turn:
///   ahead.expect(those that are probably next, known.cost);
///   ahead.process(subproblem, known.cost, dual);   // what it comes to, found here or there
///
/// What a subproblem comes to follows from it and from the cost that is known then, not from who processes it. So the
/// answers are those of a search that does one after the other, and what nobody asks for is time that would have been idle.
class SubproblemsAhead {
 public:
  struct Processed {
    BranchAndBound::Outcome outcome;
    std::uint64_t work = 0;
  };

  /// Begins so many threads of its own. All arguments have to outlast it.
  SubproblemsAhead(const BranchAndBound& exact, const CoreProblem& core, const Deadline& deadline, std::size_t threads);
  ~SubproblemsAhead();
  SubproblemsAhead(const SubproblemsAhead&) = delete;
  SubproblemsAhead& operator=(const SubproblemsAhead&) = delete;

  /// From now on these are begun, in this order, instead of those that were expected before.
  void expect(std::vector<BranchAndBound::Subproblem> next, double best_cost);
  /// BranchAndBound::process. As long as another thread is at it, this one processes what is expected.
  Processed process(BranchAndBound::Subproblem subproblem, double best_cost, DualBound& dual);

 private:
  enum class State { kExpected, kBegun, kDone };
  struct Item {
    BranchAndBound::Subproblem subproblem;
    double best_cost = 0;
    State state = State::kExpected;
    Processed processed = {};
  };
  using Items = std::map<std::uint64_t, Item>;  // by number of the subproblem

  Processed processed(BranchAndBound::Subproblem subproblem, double best_cost, DualBound& dual) const;
  /// Processes the first that is expected, without the lock; false if none is.
  bool process_next(std::unique_lock<std::mutex>& lock, DualBound& dual);
  void work();

  const BranchAndBound& exact_;
  const CoreProblem& core_;
  std::stop_source end_;
  Deadline deadline_;  // ends with this
  std::mutex mutex_;
  std::condition_variable changed_;
  Items items_;
  std::list<std::uint64_t> order_;  // of those that are expected
  std::vector<std::jthread> threads_;
};

}  // namespace shardplan
