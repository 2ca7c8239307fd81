#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// Sets `GraphTensor::index_extent` of integer inputs: the number of rows or classes that they select from, taken
/// from the operators that read them (Gather, OneHot, sparse cross-entropy, ...), also through operators that only
/// move elements. With several readers the smallest counts. Operators must have been added in a topological order.
void set_index_extents(OperatorGraphBuilder& builder);

}  // namespace shardplan
