#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

/// Walks through all runs of a program's loop in one step, in their order (`ParallelProgram::loop_order`).
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
  std::size_t turn_ = 0;         // position in `turns_`
  std::size_t instruction_ = 0;  // used if iterations run one after the other
  std::int64_t run_ = 0;
};

/// An order in which workers (`place`) interleave the iterations of the loop: while one waits for another it begins
/// the next iteration. Within an iteration each does its part in the order of the sequence. Of what workers could do
/// next, what starts earliest comes first; among those sends (a worker that began something long would make the other
/// wait); and among those the oldest iteration, so that backward operators come before forward operators of later
/// iterations (1F1B: Harlap et al., PipeDream, SOSP 2019). A worker begins an iteration only while it has fewer than
/// its `in_flight` unfinished ones, which limits its memory.
///
/// Both ends of a send wait for each other at one position of this single order, so workers cannot deadlock.
/// Additions to a sum, and reads of what the previous iteration stored, stay in the order of the iterations: results
/// do not change.
///
/// Requires: several workers, a loop, in_flight >= 1 for each worker. Takes O(turns * in_flight * log(turns)) time;
/// empty (one iteration after the other) for one iteration in flight and for more than `kMostTurns`.
LoopOrder overlapped_runs(const ParallelProgram& program, std::span<const int> in_flight);

/// Numbers of iterations in flight worth trying, by worker: those of 1F1B for stages in the order in which the
/// workers start (the last has one, the one before it two), and equal numbers for all, up to twice the number of
/// workers.
std::vector<std::vector<int>> runs_in_flight_to_try(const ParallelProgram& program);

/// Limit for instructions of the loop times iterations.
inline constexpr std::int64_t kMostTurns = 1 << 20;

/// Empty if the order contains every run of every instruction once, each worker's part of an iteration in the order
/// of the sequence, sums and stored values in the order of iterations, and no more iterations in flight than it says;
/// else the first error.
std::string check_loop_order(const ParallelProgram& program);

}  // namespace shardplan
