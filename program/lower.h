#pragma once

#include <memory>

#include "costmodel/cost_model.h"
#include "costmodel/kernel_fusion.h"
#include "graph/operator_graph.h"
#include "graph/tensor_versions.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "program/parallel_program.h"

namespace shardplan {

/// A decided plan: a strategy for every operator and a layout for every version of every tensor.
struct Decisions {
  IdVector<OperatorId, Strategy> strategies;
  VersionLayouts versions;  // canonical; as returned by `version_layouts`
};

/// Writes a plan out as a program: before operator k come the versions made at its time and the constants and
/// redistributions of its operands, then its own steps. Nothing is added or optimised: the times of the program sum
/// to what `evaluate` returns for the choice. `fusion` is the graph's; without it, it is determined first.
ParallelProgram lower(const OperatorGraph& graph, const TensorVersions& versions, const Decisions& decisions,
                      const CostModel& costs, RedistributionPlanner& redistributions, const KernelFusion& fusion);
ParallelProgram lower(const OperatorGraph& graph, const TensorVersions& versions, const Decisions& decisions,
                      const CostModel& costs, RedistributionPlanner& redistributions);

/// Lowers several plans of one graph, from several threads. What operators do under a strategy is determined once per
/// thread. Nobody else may use `redistributions` at the same time. `fusion` is the graph's and must outlive the writer.
class ProgramWriter {
 public:
  ProgramWriter(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                RedistributionPlanner& redistributions, const KernelFusion& fusion);
  ~ProgramWriter();

  /// The result of `lower`.
  ParallelProgram write(const Decisions& decisions);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardplan
