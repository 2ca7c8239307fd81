#pragma once

#include "graph/repeat_classes.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// The problem in which all copies of a repeated block take one strategy: what one module class or a scan over layers
/// can express. Operators of one class become one node if their candidates are equal, and so do versions of one class
/// of tensors. Where copies differ (the first layer's input may be partial, the user gave a strategy for one layer)
/// the nodes stay separate.
///
/// Every choice of this problem corresponds to a choice of the free problem with the same cost and peak
/// (solver/tied_problem.h).
///
/// `uniform_ties` numbers the sets of nodes that are merged, by node of the free problem.
IdVector<NodeId, NodeId> uniform_ties(const ModelProblem& free, const OperatorGraph& graph,
                                      const TensorVersions& versions, const RepeatClasses& classes);
ModelProblem with_uniform_layers(const ModelProblem& free, const OperatorGraph& graph, const TensorVersions& versions,
                                 const RepeatClasses& classes);

/// The problem that is searched: that of `build_problem`, with uniform layers if the restrictions require them.
ModelProblem searched_problem(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                              RedistributionPlanner& redistributions, const Restrictions& restrictions);

}  // namespace shardplan
