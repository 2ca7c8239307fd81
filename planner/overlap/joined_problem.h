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

/// By edge its matrix, and for edges that may join another one, with the times of `joined` where these are less
/// (planner/overlap/joined_costs.h); the problem gets these beside its own. Those that `leads` names keep theirs. Requires
/// that layers are not tied.
IdVector<EdgeId, MatrixId> joined_matrices(ModelProblem& problem, const OperatorGraph& graph,
                                           const TensorVersions& versions, RedistributionPlanner& joined,
                                           const IdVector<EdgeId, char>& leads);

}  // namespace shardplan
