#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planner/level.h"
#include "solver/search.h"

namespace shardplan {

/// How a level is searched.
struct LevelOptions {
  Level level = Level::kRatio;
  std::int64_t memory_slack_ppm =
      2'500;  // kMemory: how far above the least peak the choice may be for a shorter step, in parts per million
  std::uint64_t seed = 0;
  int threads = 1;
  std::optional<Choice> start;
  bool wants_bound = true;       // false: only the choice is needed, its bound may be 0
  std::int64_t known_bound = 0;  // kRatio: a bound that holds for this problem, from a search of one with higher limits
  /// kRatio: receives the choice that will be the answer unless the search for the bound finds a better one; may be
  /// empty.
  std::function<void(const Choice&)> first_answer;
  SearchLimits limits;
};

struct LevelResult {
  PlanStatus status = PlanStatus::kNoPlanFound;  // kOptimal refers to the level's first objective
  std::optional<Choice> choice;
  LevelValue bound;  // lower bound over all choices
  std::vector<StageStatistics> statistics;
};

/// The best choice of a level, for a problem whose memory limits are set. (For kRatio contractions must be restricted
/// to the strategies of least work, so that the ratio's numerator is constant.)
///   kSpeed   least computation + communication
///   kMemory  least peak, then least computation + communication within the slack
///   kRatio   least communication, then least computation
LevelResult search_level(const StrategyProblem& problem, const Search& search, const LevelOptions& options);

/// A level's first and second objective; smaller pairs are better choices.
std::pair<std::int64_t, std::int64_t> value_at(Level level, const Evaluation& evaluation);

/// The objective with which a search at this level minimises its first value (not for `kMemory`); at `kRatio`
/// communication is weighted so highly that it comes first.
Objective search_objective(Level level);
/// The same for problems of which this choice is known. Weighted costs from kForbidden on would be forbidden, so where its
/// own would be, communication has the largest weight, by powers of two, with which it is not: then no better one is.
Objective search_objective(Level level, const Evaluation& known);

/// The number of pairs of strategies in all edges: what a pass of the bound looks at.
std::size_t num_entries(const StrategyProblem& problem);

/// Only the bound.
LevelValue level_bound(const StrategyProblem& problem, const LevelOptions& options);

}  // namespace shardplan
