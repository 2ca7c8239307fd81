#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "layouts/redistribution/redistribution_planner.h"
#include "planner/overlap/joined_costs.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// Which collectives of a redistribution may share a bucket with others (program/buckets.h, program/schedule.h).
enum class Joining {
  kNone,        // of activations
  kReductions,  // of gradients before their update; gathers after the reduction are not joined
  kAll,         // of stored tensors, and of updated values on their way to where they are stored
};
Joining joining(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem::Communicated& what);

/// Edges whose collectives count with their start-ups where they may share buckets. Requires that a bucket's time is
/// concave in its bytes: then one member of each bucket may count as if it were alone, and all others without a
/// start-up.
struct LeadingEdges {
  /// The edges on the path of one parameter's gradient to the update and of the updated weight to where it is stored.
  /// The collectives on this path depend on each other, so no bucket holds two of them. The parameter is the one
  /// whose gradient is computed last.
  IdVector<EdgeId, char> on_path;
  IdVector<EdgeId, std::uint32_t> alone;  // by edge an index of `classes`
  /// What counts as if it were alone; first: nothing. A class is in several of these sets only where the user's fusion
  /// ids (`GraphTensor::comm_fusion`) keep the edges' collectives apart.
  std::vector<AloneClasses> classes;

  /// No edge leads: where times are measured, and perhaps not concave.
  explicit LeadingEdges(const ModelProblem& problem)
      : on_path(problem.problem.edges.size(), 0), alone(problem.problem.edges.size(), 0), classes(1) {}
};

/// What redistributions take and which options their paths have.
struct RedistributionCosts {
  const CostModel& costs;
  const RedistributionOptions& options;
};

/// The choice by which classes get their leading edges.
struct LeadingChoice {
  const Choice& choice;
  Picoseconds least_start = 0;  // classes with a shorter start-up get none
};

/// Leading edges of a choice, in terms of all choices: a class of buckets that the choice has, but not on the path,
/// counts as if alone on the last edge that has it there; all other classes do on the path. Without a choice all
/// classes do on the path. Every fusion id has leading edges of its own, and what has id 0 is never joined.
LeadingEdges leading_edges(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                           const RedistributionCosts& costs, const LeadingChoice* leading);

/// The times that count for redistributions.
struct CountedTimes {
  RedistributionCosts own;
  /// The counted times of collectives that join so; of these classes as if they were alone. Null: the edge's own times.
  std::function<std::shared_ptr<const CollectiveCosts>(Joining, const AloneClasses&)> of;
  /// True: the counted times of the paths that programs take. False: those of the path with the least counted time,
  /// but at most the edge's own times.
  bool is_on_path = false;
};

/// Matrices of counted times, not yet among the problem's.
struct CountedMatrices {
  std::size_t num_known = 0;            // matrices of the problem
  IdVector<EdgeId, MatrixId> of_edges;  // from `num_known` on those of `added`
  std::vector<CostMatrix> added;
};

/// By edge, a matrix of the counted times of its redistributions. Requires that layers are not tied.
CountedMatrices counted_matrices(const ModelProblem& problem, const OperatorGraph& graph,
                                 const TensorVersions& versions, const CountedTimes& times, const LeadingEdges& leads);

/// Adds the matrices to their problem, which may have got others meanwhile. Returns their numbers by edge.
IdVector<EdgeId, MatrixId> add_matrices(ModelProblem& problem, CountedMatrices counted);

/// Whether an entry of an edge's matrix stands for communication.
inline bool is_paid(std::int64_t cost) { return cost > 0 && cost < kForbidden; }

}  // namespace shardplan
