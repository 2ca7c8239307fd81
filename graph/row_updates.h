#pragma once

#include "graph/operator_graph.h"
#include "graph/training_options.h"

namespace shardplan {

/// Throws an InputError unless training can update only the rows of a table that `lookup` reads: they are updated by the
/// optimizers that have such an update, once for each step and with nothing in between.
void check_row_updates(const OperatorGraph& graph, const GraphOperator& lookup, const TrainingOptions& options);

}  // namespace shardplan
