#pragma once

#include <optional>

#include "costmodel/cost_model.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "planner/overlap/step_bound.h"

namespace shardplan {

/// What times of communication are made of.
struct CountedLevels {
  const CostModel& costs;
  RedistributionOptions options;
  bool is_measured = false;  // times of collectives come from tables
  std::optional<int> level;  // in use the most; nothing where there is but one
};

/// Times of a bound for which choices are looked for: all that belongs to weights and gradients may join others, and the
/// shortest of all paths on each level counts, whichever programs take. The problem gets the matrices beside its own.
StepBound::Matrices coarse_matrices(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                    const CountedLevels& counted);

/// Times of the bound that is told: what joins is what joins in programs, paths are those that programs take.
StepBound::Matrices fine_matrices(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                  const CountedLevels& counted);

}  // namespace shardplan
