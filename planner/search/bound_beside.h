#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "base/task_beside.h"
#include "planner/level.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// Computes a bound in another thread, starting from a known choice, while that choice may still be improved:
///   BoundBeside bound(seek, stop);
///   bound.begin(first);    // as soon as there is one
/// again only if `final` is another choice: the result is always that of the last one
///   bound.get();
class BoundBeside {
 public:
  /// `seek` runs in the other thread and should end soon after its token or `stop` requests it.
  using Seek = std::function<LevelValue(const Choice& known, std::stop_token stop)>;
  BoundBeside(Seek seek, std::stop_token stop);

  void begin(const Choice& known);
  /// Waits for the bound. Requires that `begin` was called.
  LevelValue get();

 private:
  Seek seek_;
  std::stop_token stop_;
  std::optional<Choice> known_;
  std::optional<TaskBeside<LevelValue>> bound_;  // uses the above, so it ends first
};

}  // namespace shardplan
