#pragma once

#include <cstddef>

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// Leaf folding: a node with one neighbour goes if each value of the neighbour has one answer that is best in cost and
/// in bytes at every time; it then follows the neighbour. Without memory every leaf folds, and trees fold up entirely.
/// Stops at `deadline`; settles the graph and gathers memory. Returns how many nodes were folded.
std::size_t fold_leaves(ReductionGraph& graph, const Deadline& deadline);

}  // namespace shardplan
