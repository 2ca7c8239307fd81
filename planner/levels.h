#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/search.h"

namespace shardplan {

/// How one level of `shard(..., level)` is searched.
struct LevelOptions {
  int level = 0;
  std::int64_t memory_slack_ppm = 10'000;  // level 1: share of the least peak given for time, parts per million
  std::uint64_t seed = 0;
  int threads = 1;
  std::optional<Choice> start;
  SearchLimits limits;
};

struct LevelResult {
  PlanStatus status = PlanStatus::kNoPlanFound;  // kOptimal: of the level's first objective
  std::optional<Choice> choice;
  /// No choice is below it in the level's own quantity: level 0 picoseconds of communication, level 1 peak bytes, level
  /// 2 picoseconds of computation and communication.
  std::int64_t bound = 0;
  std::vector<StageStatistics> statistics;
};

/// Levels on a problem whose memory limits are set (and, for level 0, whose contractions keep only the strategies of
/// least work: the ratio's numerator is then constant):
///   2  least computation + communication
///   1  least peak, then least computation + communication within the slack
///   0  least communication, then least computation
LevelResult search_level(const StrategyProblem& problem, const Search& search, const LevelOptions& options);

/// The bound alone, in the level's own quantity.
std::int64_t level_bound(const StrategyProblem& problem, const LevelOptions& options);

}  // namespace shardplan
