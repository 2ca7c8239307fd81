#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "planner/overlap/searched_model.h"
#include "planner/search/level_search.h"

namespace shardplan {

/// How much is done to find the choice with the least estimated step.
struct GuessedSearch {
  std::span<const Choice> starts;     // known choices; the search starts from the cheapest
  LevelOptions options;               // without start
  std::uint64_t work = 0;             // limit, if that of `options` is not lower
  Bytes most_held = kUnlimitedBytes;  // memory per device, if the problem's limits are not lower
};

/// The choice that costs the least in a problem that estimates the steps of the model's choices, as far as the limits
/// permit; with uniform layers if `model` ties them. Nothing if none is found that fits.
std::optional<Choice> shortest_by(StrategyProblem estimated, const SearchedModel& model, const GuessedSearch& search);

/// The same by a guess (planner/overlap/guessed_problem.h).
std::optional<Choice> shortest_by(const Guess& guess, const SearchedModel& model, const GuessedSearch& search);

}  // namespace shardplan
