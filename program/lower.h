#pragma once

#include <memory>

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

/// Lowers several plans of one graph, for as many threads as ask. Which operators run as one kernel is found out once, and what
/// operators do under a strategy once for each of the threads. Nobody else may ask `redistributions` meanwhile.
class ProgramWriter {
 public:
  ProgramWriter(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                RedistributionPlanner& redistributions);
  ~ProgramWriter();

  /// What `lower` gives.
  ParallelProgram write(const Decisions& decisions);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardplan
