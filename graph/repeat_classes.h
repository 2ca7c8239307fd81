#pragma once

#include <cstddef>

#include "base/index.h"
#include "graph/operator_graph.h"

namespace shardplan {

using RepeatClassId = Index<struct RepeatClassTag>;

/// Which operators and tensors correspond to each other in the copies of a repeated block.
///
/// - Forward operators correspond if they compute the same operation and their names differ only in the indices of
///   repeats (`folded_name`).
/// - The operators of a forward operator or parameter (gradients, recomputed copies, updates) follow it: the second of
///   three gradients of one copy corresponds to the second of three of another, if operations are equal.
/// - Other operators correspond if their operands do.
/// - Results correspond if their producers do, parameters and states if their first readers do; others never.
///
/// Classes are numbered in program order; in a model without repeats most have one member.
struct RepeatClasses {
  IdVector<OperatorId, RepeatClassId> operators;
  IdVector<TensorId, RepeatClassId> tensors;
  std::size_t count = 0;
};

RepeatClasses repeat_classes(const OperatorGraph& graph);

/// Whether some block occurs more than once: two forward operators have the same class.
bool has_copies(const OperatorGraph& graph, const RepeatClasses& classes);

}  // namespace shardplan
