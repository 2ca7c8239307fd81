#pragma once

#include <optional>

#include "graph/tensor_versions.h"
#include "planner/problem/model_problem.h"
#include "program/lower.h"

namespace shardplan {

/// The layouts of every version under a choice.
VersionLayouts version_layouts(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
                               const Choice& choice, const DeviceMesh& mesh);

/// Everything that a plan with this choice decides, with weights that nothing updates stored as they are read if that
/// takes less memory than the choice.
Decisions decisions_of(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
                       const Choice& choice, const DeviceMesh& mesh);

/// The choice with these strategies and layouts; nothing if one of them is not a candidate, or if they differ where
/// the problem has only one node.
std::optional<Choice> find_choice(const TensorVersions& versions, const ModelProblem& problem,
                                  const IdVector<OperatorId, Strategy>& strategies, const VersionLayouts& layouts);

}  // namespace shardplan
