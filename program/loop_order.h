#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

/// Walks through the runs of a program's loop in their order (`ParallelProgram::loop_order`), all of a step.
class LoopWalk {
 public:
  explicit LoopWalk(const ParallelProgram& program);

  bool is_done() const;
  std::size_t instruction() const;
  std::int64_t run() const;
  void next();

 private:
  const std::vector<Turn>* turns_;
  std::size_t loop_ = 0;
  std::int64_t runs_ = 0;
  std::size_t turn_ = 0;         // of `turns_`
  std::size_t instruction_ = 0;  // where one run follows the other
  std::int64_t run_ = 0;
};

/// An order in which workers (`place`) overlap the runs of the loop: while one waits for another it begins the next run.
/// Within a run each does its part in the order of the sequence; of what workers could do next, what begins earliest
/// comes first, of that sends (a worker that began something long would let the other wait for its end), and of these
/// the oldest run, so that backward operators come before the forward ones of later runs (1F1B: Harlap et al.,
/// PipeDream, SOSP 2019). A worker begins a run only when fewer than its `in_flight` that it has begun are unfinished,
/// which limits what it holds.
///
/// Sends wait for each other as before, at one place of this one order, so that no workers ever wait in a circle. What
/// each run adds to a sum, and reads of what the run before stored, stays in the order of the runs: no number changes.
///
/// Requires: several workers, a loop, in_flight >= 1 for each worker. Takes O(turns * in_flight * log(turns)) time; empty
/// (one run after the other) for one run in flight and for more than `kMostTurns`.
LoopOrder overlapped_runs(const ParallelProgram& program, std::span<const int> in_flight);

/// How many runs workers may have in flight, as far as it is worth trying: what 1F1B gives to stages in the order in which
/// the workers begin (the last one has one, the one before it two), and the same for all, up to twice their number.
std::vector<std::vector<int>> runs_in_flight_to_try(const ParallelProgram& program);

/// Instructions of the loop times runs.
inline constexpr std::int64_t kMostTurns = 1 << 20;

/// Empty if the order has every run of every instruction once, each worker's part of a run in the order of the sequence,
/// sums and stored values in the order of runs, and no worker more runs in flight than it says; else the first fault.
std::string check_loop_order(const ParallelProgram& program);

}  // namespace shardplan
