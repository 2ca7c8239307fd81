#pragma once

#include <cstddef>

#include "base/index.h"
#include "graph/operator_graph.h"

namespace shardplan {

using RepeatClassId = Index<struct RepeatClassTag>;

/// Which operators and tensors are the same thing in different copies of a repeated block.
///
/// - Forward operators are if their names are but for the indices of repeats (`folded_name`) and they compute the same
///   operation.
/// - What belongs to a forward operator or to a parameter (its gradients, copies that are computed again, its update) follows
///   it: the second of three gradients of one copy is the second of three of another, if the operation is the same.
/// - Other operators are if what they read is.
/// - Results are if their producers are, parameters and states if their first readers are. Inputs and constants are not.
///
/// Classes are numbered in program order; most of a model without repeats has one member each.
struct RepeatClasses {
  IdVector<OperatorId, RepeatClassId> operators;
  IdVector<TensorId, RepeatClassId> tensors;
  std::size_t count = 0;
};

RepeatClasses repeat_classes(const OperatorGraph& graph);

/// Whether some block is there more than once: two forward operators are the same thing.
bool has_copies(const OperatorGraph& graph, const RepeatClasses& classes);

}  // namespace shardplan
