#pragma once

#include <optional>

#include "costmodel/cost_model.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "planner/overlap/joined_problem.h"
#include "planner/overlap/step_bound.h"

namespace shardplan {

/// How the communication times of a bound are computed.
struct CountedLevels {
  const CostModel& costs;
  RedistributionOptions options;
  bool is_measured = false;  // times of collectives come from measured tables
  std::optional<int> level;  // the busiest level of links; nothing if there is only one
};

/// Coarse communication times, used while weights are improved: everything that belongs to weights and gradients may
/// join buckets, and on each level the path that uses it least counts, whichever path programs take. Adds the
/// matrices to the problem.
StepBound::Matrices coarse_matrices(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                    const CountedLevels& counted);

/// Finer communication times: only what programs actually join may join buckets, only paths that programs take count,
/// and so does one start-up of every class of buckets that `leading` has.
StepBound::Matrices fine_matrices(ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                  const CountedLevels& counted, const LeadingChoice& leading);

}  // namespace shardplan
