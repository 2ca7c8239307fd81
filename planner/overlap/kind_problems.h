#pragma once

#include <vector>

#include "graph/tensor_versions.h"
#include "planner/problem/global_degrees.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// The settings for a whole model that people try first, and that a search of summed times may miss, since they hide well what
/// they communicate: the batch over all devices, and weights over 2, 4, ... neighbours of the innermost level, with the
/// sequence cut between them or not; in training each with the stages of ZeRO, of the third with as many weights kept gathered
/// for the backward pass as is fast and fits.
std::vector<GlobalDegrees> common_degrees(const OperatorGraph& graph, const std::vector<AxisRef>& pieces);

/// Forbids in `problem` what plans of these degrees do not have; false where some product or tensor cannot be cut so. `node`
/// says which of its nodes decides each of the free problem's, of which it may be a tied one.
bool keep_degrees(StrategyProblem& problem, const IdVector<NodeId, NodeId>& node, const GlobalDegrees& degrees,
                  const ModelProblem& free, const OperatorGraph& graph, const TensorVersions& versions,
                  const DeviceMesh& mesh);

}  // namespace shardplan
