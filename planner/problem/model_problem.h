#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/rare_value.h"
#include "base/shared_vector.h"
#include "costmodel/cost_model.h"
#include "costmodel/kernel_fusion.h"
#include "costmodel/operator_steps.h"
#include "graph/operator_graph.h"
#include "graph/repeat_classes.h"
#include "graph/tensor_versions.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "planner/problem/problem_nodes.h"
#include "solver/strategy_problem.h"
#include "strategies/enumerate.h"

namespace shardplan {

/// What restricts the candidates of a problem.
struct Restrictions {
  IdVector<OperatorId, SharedVector<Strategy>> operators;  // empty: all that can be enumerated
  IdVector<VersionId, RareValue<TensorLayout>> versions;   // the required layout of a version
  IdVector<VersionId, SharedVector<TensorLayout>> among;   // the allowed layouts of a version; empty: all possible ones
  bool least_contraction_work = false;  // level 0: contractions keep only the strategies with the least repeated work
  std::vector<AxisRef> pieces;          // the mesh's, for enumeration
  UnevenCuts uneven = UnevenCuts::kNone;
  bool counts_copies = false;                    // memory includes copies of operands (problem_copies.h)
  bool counts_redistributions = false;           // and what redistributions hold while they run (running_memory.h)
  Bytes capacity = 0;                            // at every time
  std::shared_ptr<const KernelFusion> fusion;    // the graph's; null: it is determined first
  std::shared_ptr<const RepeatClasses> uniform;  // set: copies of a repeated block take one strategy
};
/// Removes the strategies of a contraction with which several devices repeat work that other strategies avoid.
void keep_least_work(const Operation& operation, std::vector<Strategy>& strategies);
/// No restrictions, with all vectors sized.
Restrictions no_restrictions(const OperatorGraph& graph, const TensorVersions& versions);

/// Builds the problem. Every operator and every version whose layout is a choice becomes a node, separately for each
/// copy of a layer (`searched_problem` ties them); every redistribution becomes an edge. Equal operators share their
/// table, equal edges their matrix. Throws InputError if an operator has no strategy left.
ModelProblem build_problem(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                           RedistributionPlanner& redistributions, const Restrictions& restrictions);

}  // namespace shardplan
