#pragma once

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// Brings the memory side of a problem into its smallest equal form. Requires `gather_memory`. Afterwards
///   - a node's segments are disjoint and in order, each has a value of zero bytes (the least is taken off the limits),
///     and equal neighbours are one;
///   - a value that does not fit even if all other nodes take their least is marked for removal (the caller settles);
///   - only times that can bind are left (`compress_times`).
/// Limits are then what is left above the least usages; a negative one makes the graph infeasible.
/// Throws InputError if limits that bind are so large that sums of bytes could leave 64 bits.
void simplify_memory(ReductionGraph& graph);

}  // namespace shardplan
