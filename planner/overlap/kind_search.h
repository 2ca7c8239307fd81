#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/overlap/searched_model.h"
#include "planner/problem/global_degrees.h"
#include "planner/search/level_search.h"
#include "solver/limits.h"
#include "solver/tied_problem.h"

namespace shardplan {

/// Input of the search for plans with one setting for the whole model.
struct KindSearch {
  const SearchedModel& model;
  const TiedProblem& tied;   // the model's problem with ties, and with costs that estimate overlapped steps
  Picoseconds too_long = 0;  // choices with a longer estimated step are dropped
  LevelOptions options;      // of each search; its work limit is reduced
  const Deadline& deadline;  // no search starts after it
};

struct FoundKinds {
  std::int64_t searched = 0;    // settings that the model can have
  std::vector<Choice> choices;  // of the model: the best of each setting, shortest first
};

/// The best choice for each of these settings (planner/overlap/kind_problems.h). The searches are independent and run
/// side by side; the answer does not depend on the number of processors.
FoundKinds search_kinds(std::span<const GlobalDegrees> kinds, const KindSearch& search);

}  // namespace shardplan
