#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "layouts/redistribution/redistribution_planner.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// Which collectives on a way may run as one with others (program/buckets.h, program/schedule.h).
enum class Joining {
  kNone,        // of activations
  kReductions,  // of gradients on their way to an update; gathers behind them do not
  kAll,         // of what is stored, of new values on their way to where they are stored
};
constexpr std::size_t kNumJoinings = 3;
Joining joining(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem::Communicated& what);

/// By edge of the problem: whether it is on the way of one parameter's gradient from where it is whole to the update and of
/// the new weight from there to where it is stored. They follow each other, so that no bucket holds two of them: where a
/// bucket's time is concave in its bytes, one member may count with its start-up, as if alone, beside all others
/// without. The parameter is the one whose gradient is made last.
IdVector<EdgeId, char> leading_edges(const ModelProblem& problem, const OperatorGraph& graph,
                                     const TensorVersions& versions);

/// What counts of redistributions.
struct CountedTimes {
  /// By `Joining`; null: the edge's own times.
  std::array<RedistributionPlanner*, kNumJoinings> planners = {};
  /// Whether these plan by `CountedOnPath` (planner/overlap/joined_costs.h). False: what they take counts, where it is less
  /// than the edge's own times.
  bool is_on_path = false;
};

/// By edge a matrix of what counts of its redistributions; of those that `leads` names as if nothing of them joined. The
/// problem gets these beside its own. Requires that layers are not tied.
IdVector<EdgeId, MatrixId> counted_matrices(ModelProblem& problem, const OperatorGraph& graph,
                                            const TensorVersions& versions, const CountedTimes& times,
                                            const IdVector<EdgeId, char>& leads);

}  // namespace shardplan
