#pragma once

#include <cstddef>

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// Dominance: a value is removed if another value of its node costs no more whatever the neighbours do, and uses no
/// more memory at any time. With own costs c, tables t_e in normal form and bytes m:
///
///   a dominates b   if   c(a) + sum over edges e of max(0, max over x of t_e(a, x) - t_e(b, x)) <= c(b)   and   m(a) <= m(b)
///
/// (The neighbours may each choose the x that is worst for a, so the condition is sufficient, and checking it takes
/// one pass over the rows.) Of equal values the first is kept. Looks at nodes that changed since the last call; stops
/// at `deadline`. Requires gathered memory and `simplify_memory`; settles the graph after each node. Returns how many
/// values were removed.
std::size_t remove_dominated_values(ReductionGraph& graph, const Deadline& deadline);

}  // namespace shardplan
