#pragma once

#include "graph/repeat_classes.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// The problem in which copies of a repeated block take one strategy: what can be written as one module class, or as a scan
/// over layers. Operators of one class are one node if their candidates are equal, and so are versions of one class of
/// tensors; what differs from copy to copy (the first layer's input may come partial, a user wrote a strategy for one layer)
/// stays a node of its own.
///
/// The choice of every such problem is one of the free problem's, at the same cost and peak (solver/tied_problem.h).
///
/// `uniform_ties` numbers the sets of nodes that are then one, by node of the free problem.
IdVector<NodeId, NodeId> uniform_ties(const ModelProblem& free, const OperatorGraph& graph,
                                      const TensorVersions& versions, const RepeatClasses& classes);
ModelProblem with_uniform_layers(const ModelProblem& free, const OperatorGraph& graph, const TensorVersions& versions,
                                 const RepeatClasses& classes);

/// The problem that is searched: that of `build_problem`, with uniform layers if the restrictions ask for them.
ModelProblem searched_problem(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                              RedistributionPlanner& redistributions, const Restrictions& restrictions);

}  // namespace shardplan
