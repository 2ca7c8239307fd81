#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planner/level.h"
#include "solver/search.h"

namespace shardplan {

/// How one level is searched.
struct LevelOptions {
  Level level = Level::kRatio;
  std::int64_t memory_slack_ppm = 10'000;  // kMemory: share of the least peak given for time, parts per million
  std::uint64_t seed = 0;
  int threads = 1;
  std::optional<Choice> start;
  bool wants_bound = true;  // false: a choice is enough, its bound may be 0
  /// kRatio: told of the choice that the answer is unless the search for the bound finds a better one; may be empty.
  std::function<void(const Choice&)> first_answer;
  SearchLimits limits;
};

struct LevelResult {
  PlanStatus status = PlanStatus::kNoPlanFound;  // kOptimal: of the level's first objective
  std::optional<Choice> choice;
  LevelValue bound;  // no choice is below it
  std::vector<StageStatistics> statistics;
};

/// The best choice of a level on a problem whose memory limits are set (and, for kRatio, whose contractions keep only
/// the strategies of least work: the ratio's numerator is then constant):
///   kSpeed   least computation + communication
///   kMemory  least peak, then least computation + communication within the slack
///   kRatio   least communication, then least computation
LevelResult search_level(const StrategyProblem& problem, const Search& search, const LevelOptions& options);

/// What a level minimises first, then what it minimises within that; smaller pairs are better choices.
std::pair<std::int64_t, std::int64_t> value_at(Level level, const Evaluation& evaluation);

/// What a search at this level minimises first, not `kMemory`: communication weighs so much at `kRatio` that it comes
/// first.
Objective search_objective(Level level);

/// The bound alone.
LevelValue level_bound(const StrategyProblem& problem, const LevelOptions& options);

}  // namespace shardplan
