#pragma once

#include <cstdint>

#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// Proves for some pairs of states that no path joins them on which every state has at least `least_shards` shards. True:
/// there is none. False: nothing is known. `shape` is the tensor's.
///
/// Where so many shards leave no room to gather some piece of the mesh, it shards the tensor all the way. If then none of
/// the slots that it could move to leads to the slot in which it ends, there is no path:
///
///     on x=3, y=8: (32:{}, 60:{x}) -> {x}      of the dimensions 64, 1920, 16, 16 only the second divides by 3, and
///                                              x cannot get past 32 rows, which y is too small to shard
///
/// Without this, searches of such pairs end only at their limits. Time: slots of all spaces squared.
bool has_stuck_piece(const RedistributionGraph& graph, const Shape& shape, std::uint32_t source, std::uint32_t target,
                     std::int64_t least_shards);

}  // namespace shardplan
