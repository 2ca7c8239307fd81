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

/// Subproblems of branch and bound that idle processors process ahead of their turn:
///   ahead.expect(those that are probably next, known.cost);
/// the result, computed here or there
///
/// The result of a subproblem depends on it and on the best cost known at that time, not on who processes it. So the
/// answers are those of a sequential search, and results that nobody asks for only cost time that would have been
/// idle.
class SubproblemsAhead {
 public:
  struct Processed {
    BranchAndBound::Outcome outcome;
    std::uint64_t work = 0;
  };

  /// Starts that many threads. All arguments must outlive it.
  SubproblemsAhead(const BranchAndBound& exact, const CoreProblem& core, const Deadline& deadline, std::size_t threads);
  ~SubproblemsAhead();
  SubproblemsAhead(const SubproblemsAhead&) = delete;
  SubproblemsAhead& operator=(const SubproblemsAhead&) = delete;

  /// From now on these are processed, in this order, instead of those expected before.
  void expect(std::vector<BranchAndBound::Subproblem> next, double best_cost);
  /// As BranchAndBound::process. While another thread is processing it, this one processes expected ones.
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
