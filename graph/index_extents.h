#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// Sets `GraphTensor::index_extent` of integer inputs: the number of rows or classes that they choose among, found at
/// the operators that read them (Gather, OneHot, sparse cross-entropy, ...), also behind operators that only move
/// elements. Of several readers the smallest counts. Operators must have been added in a topological order.
void set_index_extents(OperatorGraphBuilder& builder);

}  // namespace shardplan
