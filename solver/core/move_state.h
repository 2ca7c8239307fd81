#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solver/core/core_problem.h"
#include "solver/core/slack.h"
#include "solver/core/work_meter.h"

namespace shardplan {

/// A choice for a core that is being changed, with the cost of each possible change and the bytes left at each time.
class MoveState {
 public:
  MoveState(const CoreProblem& core, CoreChoice choice);

  const CoreProblem& core() const { return *core_; }
  const CoreChoice& choice() const { return choice_; }
  double cost() const { return cost_; }
  /// Whether it holds no forbidden pair and no time is over its limit.
  bool is_feasible() const;

  /// Cost of each value of a node given its neighbours' choices.
  std::span<const double> conditional(std::size_t node) const {
    return {conditional_.data() + core_->first_value[node], core_->num_values(node)};
  }
  void move(std::size_t node, std::uint32_t value);
  /// Whether limits hold if this node moves. (They may be violated before, at times where the bytes do not rise.)
  bool fits(std::size_t node, std::uint32_t value) const;
  const Slack& slack() const { return slack_; }
  void set(const CoreChoice& choice);

  /// Moves single nodes to cheaper values that fit until none is left; equal costs do not move.
  void descend(WorkMeter& meter);
  /// Moves single nodes at the worst times to values with fewer bytes, least cost per byte first, until limits hold.
  /// False if single moves do not suffice.
  bool repair(WorkMeter& meter);

 private:
  void recompute();
  bool reduce_excess(std::size_t worst, WorkMeter& meter);
  /// Bytes over the limits, summed over times, that a move takes away (or adds: negative).
  double excess_removed(std::size_t node, std::uint32_t value) const;

  const CoreProblem* core_;
  CoreChoice choice_;
  std::vector<double> conditional_;
  double cost_ = 0;
  Slack slack_;
};

/// A choice of least bytes for every node (cheapest among those), from which repairs start.
CoreChoice fewest_bytes_choice(const CoreProblem& core);

}  // namespace shardplan
