#pragma once

#include <functional>
#include <future>
#include <optional>
#include <stop_token>

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
  ~BoundBeside();
  BoundBeside(const BoundBeside&) = delete;
  BoundBeside& operator=(const BoundBeside&) = delete;

  void begin(const Choice& known);
  /// Waits for the bound. Requires that `begin` was called.
  LevelValue get();

 private:
  void end();

  Seek seek_;
  std::stop_token stop_;
  std::optional<Choice> known_;
  std::stop_source own_stop_;
  std::optional<std::stop_callback<std::function<void()>>> forward_;  // from `stop_` to the own one
  std::future<LevelValue> bound_;
};

}  // namespace shardplan
