#pragma once

#include "costmodel/cost_model.h"
#include "graph/operator_graph.h"
#include "graph/tensor_versions.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "program/parallel_program.h"

namespace shardplan {

/// A decided plan: a strategy for every operator and a layout for every version of every tensor.
struct Decisions {
  IdVector<OperatorId, Strategy> strategies;
  IdVector<VersionId, TensorLayout> versions;  // canonical; as `version_layouts` gives them
};

/// Writes a plan out as what every device runs: before operator k the versions that its time makes, the constants and
/// redistributions of its operands, then its own steps. Adds nothing of its own and improves nothing: the program's
/// times sum to what `evaluate` says of the choice.
ParallelProgram lower(const OperatorGraph& graph, const TensorVersions& versions, const Decisions& decisions,
                      const CostModel& costs, RedistributionPlanner& redistributions);

}  // namespace shardplan
