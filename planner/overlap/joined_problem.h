#pragma once

#include <vector>

#include "layouts/redistribution/redistribution_planner.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// Whether collectives on the way that an edge pays for may run as one with others (program/buckets.h): those of what is
/// stored, of new values, of gradients on their way to an update.
bool may_join(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem::Communicated& what);

/// By edge of the problem: whether it is on the way of one parameter's gradient from where it is whole to the update and of
/// the new weight from there to where it is stored. They follow each other, so that no bucket holds two of them: where a
/// bucket's time is concave in its bytes, one member may count with its start-up, as if alone, beside all others
/// without. The parameter is the one whose gradient is made last.
IdVector<EdgeId, char> leading_edges(const ModelProblem& problem, const OperatorGraph& graph,
                                     const TensorVersions& versions);

/// Planners of redistributions by `CountedOnPath` (planner/overlap/joined_costs.h).
struct CountedPlanners {
  RedistributionPlanner* alone = nullptr;   // what counts are times alone; null: all of these
  RedistributionPlanner* joined = nullptr;  // and times of what may join others
};

/// By edge a matrix of what counts of its redistributions: of edges that may join others by `joined`, of those that `leads`
/// names and of all others by `alone`. The problem gets these beside its own. Requires that layers are not tied.
IdVector<EdgeId, MatrixId> counted_matrices(ModelProblem& problem, const OperatorGraph& graph,
                                            const TensorVersions& versions, const CountedPlanners& planners,
                                            const IdVector<EdgeId, char>& leads);

}  // namespace shardplan
