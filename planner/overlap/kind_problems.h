#pragma once

#include <vector>

#include "graph/tensor_versions.h"
#include "planner/problem/global_degrees.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// The common manual settings for a whole model, which a search over summed times may miss because they hide much of
/// their communication: the batch over all devices, or tensor parallelism over 2, 4, ... neighbours of the innermost
/// level, with and without sequence parallelism; in training each with the stages of ZeRO. With ZeRO-3, as many
/// weights as pays off and fits are kept gathered for the backward pass. If the number of devices outside of that level
/// does not divide the batch, it is sharded over the pieces that divide it into the most parts, and every way to use
/// the others for tensor and context parallelism is a setting too.
std::vector<GlobalDegrees> common_degrees(const OperatorGraph& graph, const std::vector<AxisRef>& pieces);

/// Forbids in `problem` everything that plans of these degrees do not have; false if some product or tensor cannot be
/// sharded that way. `problem` may be tied: `node` maps the nodes of the free problem to its nodes.
bool keep_degrees(StrategyProblem& problem, const IdVector<NodeId, NodeId>& node, const GlobalDegrees& degrees,
                  const ModelProblem& free, const OperatorGraph& graph, const TensorVersions& versions,
                  const DeviceMesh& mesh);

}  // namespace shardplan
