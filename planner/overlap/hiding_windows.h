#pragma once

#include <cstdint>
#include <vector>

#include "planner/overlap/searched_model.h"
#include "program/parallel_program.h"

namespace shardplan {

/// How much of a communication its window (`HidingWindows`) is taken to hide.
struct Hiding {
  std::int64_t slowdown_percent = 0;  // what a hidden communication adds to the step, as a share of its time
  std::int64_t room_percent = 0;      // which part of the kernels in its window a communication may have for itself
};

/// What could hide each communication in the timelines of plans that are known: the kernels that run after what it
/// waits for and before what waits for it. In
///
///     kernel     | head | dW of head |   ...   | d of embedding |         | update |
///     link                                                      | reduce  |
///
/// nothing hides the reduction of the sum of both gradients, but nearly the whole backward pass could hide that of the
/// head's gradient alone: there, it would cost little.
///
/// So an edge on which communication takes the time t is estimated to add to the step
///
///     max(slowdown * t + (1 - slowdown) * max(0, t - room * kernels), crowded * t)
///
/// where `kernels` is how long kernels run in its window, and `crowded` grows from 0 to 1 while the share of that time
/// in which the busiest level of links is busy grows from 80 to 100 %. Windows are means over all plans added, and over
/// all copies of an edge in layers that are tied. An estimate, not a bound: a choice that relies on the windows of
/// another plan changes them, and several communications may rely on one window.
class HidingWindows {
 public:
  /// The model must outlive the windows.
  explicit HidingWindows(const SearchedModel& model);

  /// Adds the windows in the timeline of a plan of the model, on one worker.
  void add(const ParallelProgram& program);

  /// The problem in which each communication costs its estimate. At least one plan must have been added.
  StrategyProblem estimated(const Hiding& hiding) const;

 private:
  struct Window {
    Picoseconds kernels = 0;  // how long kernels run in it
    Picoseconds busy = 0;     // for how much of that links are busy
  };

  const SearchedModel& model_;
  IdVector<EdgeId, std::uint32_t> group_;  // edges that are copies of each other
  std::vector<std::int64_t> members_;      // by group: number of edges
  std::vector<Window> sums_;               // by group: over all edges and plans
  std::int64_t plans_ = 0;
};

}  // namespace shardplan
