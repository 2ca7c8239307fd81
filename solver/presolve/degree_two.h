#pragma once

#include <cstddef>

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// Degree two: a node without memory between two neighbours becomes an edge between them,
///
///   a - b - c     t(a, c) = min over b of t(a, b) + cost(b) + t(b, c)
///
/// unless the new table would be larger than both old ones together (and not small). Works in rounds over nodes that are
/// not neighbours: a chain of equal nodes is halved in each, and all its pairs are equal and are joined once. Stops at
/// `deadline`; settles the graph. Returns how many nodes were replaced.
std::size_t join_degree_two(ReductionGraph& graph, const Deadline& deadline);

}  // namespace shardplan
