#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "layouts/redistribution/redistribution_planner.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// Which collectives of a redistribution may share a bucket with others (program/buckets.h, program/schedule.h).
enum class Joining {
  kNone,        // of activations
  kReductions,  // of gradients before their update; gathers after the reduction are not joined
  kAll,         // of stored tensors, and of updated values on their way to where they are stored
};
constexpr std::size_t kNumJoinings = 3;
Joining joining(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem::Communicated& what);

/// By edge of the problem: whether it belongs to the path of one parameter's gradient to the update and of the
/// updated weight to where it is stored. The collectives on this path depend on each other, so no bucket holds two of
/// them. Where a bucket's time is concave in its bytes, one member may count with its start-up as if it were alone,
/// and all others without. The parameter is the one whose gradient is computed last.
IdVector<EdgeId, char> leading_edges(const ModelProblem& problem, const OperatorGraph& graph,
                                     const TensorVersions& versions);

/// The times that count for redistributions.
struct CountedTimes {
  /// By `Joining`; null: the edge's own times.
  std::array<RedistributionPlanner*, kNumJoinings> planners = {};
  /// Whether these planners use `CountedOnPath` (planner/overlap/joined_costs.h). False: the smaller of their time
  /// and the edge's own time counts.
  bool is_on_path = false;
};

/// By edge, a matrix of the counted times of its redistributions; for edges marked in `leads` as if nothing were
/// joined. Adds the matrices to the problem. Requires that layers are not tied.
IdVector<EdgeId, MatrixId> counted_matrices(ModelProblem& problem, const OperatorGraph& graph,
                                            const TensorVersions& versions, const CountedTimes& times,
                                            const IdVector<EdgeId, char>& leads);

}  // namespace shardplan
