#pragma once

#include <cstddef>
#include <cstdint>

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// Follower merging: if the value of one node (the leader) determines that of a neighbour (the follower), because all
/// other pairs are forbidden, the follower is merged into the leader. Nearly all forbidden pairs of real problems are
/// of this kind: elementwise operators that must be sharded like their operand.
///
/// A follower's tables grow to the number of its leader's values; a merge that would bring all tables together above
/// `entry_limit` entries is omitted. Stops at `deadline`. Settles the graph and gathers memory; returns how many
/// nodes were merged.
std::size_t merge_followers(ReductionGraph& graph, std::int64_t entry_limit, const Deadline& deadline);

}  // namespace shardplan
