#pragma once

#include <cstddef>
#include <cstdint>

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// Follower merging: where the value of one node determines that of a neighbour, because all other pairs are forbidden,
/// the neighbour (the follower) becomes part of the node (its leader). Nearly all forbidden pairs of real problems are
/// of this kind: elementwise operators that must be cut as their operand is.
///
/// A follower's tables grow to the values of its leader; a merge that would take all tables together beyond
/// `entry_limit` entries is left out. Stops at `deadline`. Settles the graph and gathers memory; returns how many nodes
/// were merged.
std::size_t merge_followers(ReductionGraph& graph, std::int64_t entry_limit, const Deadline& deadline);

}  // namespace shardplan
