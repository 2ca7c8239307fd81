#pragma once

#include <vector>

#include "planner/overlap/searched_model.h"
#include "planner/search/level_search.h"

namespace shardplan {

/// Large neighbourhoods of a choice (P. Shaw, Using Constraint Programming and Local Search Methods to Solve Vehicle
/// Routing Problems, CP 1998): a part of the nodes is searched again, by an estimate of the step, while all others keep
/// their strategies.
///
/// The parts are the passes of a training step, what is stored together with its updates, and the surroundings of what
/// communicates the most by the estimate. Each of the surroundings is searched twice: for the least estimate, and for
/// the least in which this communication takes less time than now. The second leaves a choice that the estimate takes
/// for the best.
class PartSearch {
 public:
  /// The model must outlive the search.
  PartSearch(const SearchedModel& model, LevelOptions options);

  /// The choice found in each part, of the model's problem with other costs. None is `center`, none is there twice.
  /// Nothing if the layers of `center` differ while the model ties them.
  std::vector<Choice> around(const Choice& center, const StrategyProblem& estimated) const;

 private:
  const SearchedModel& model_;
  LevelOptions options_;
};

}  // namespace shardplan
