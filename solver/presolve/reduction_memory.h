#pragma once

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// Afterwards a node's segments are disjoint and in order, each has a value of zero bytes (the least is taken off the
/// limits), and equal neighbours are one. Limits are then what is left above the least usages; a negative one makes the
/// graph infeasible. Only looks at nodes whose memory changed. Requires `gather_memory`.
void tidy_memory(ReductionGraph& graph);

/// Brings the memory side of a problem into its smallest equal form: `tidy_memory`, and then
///   - a value that does not fit even if all other nodes take their least is marked for removal (the caller settles);
///   - only times that can bind are left (`compress_times`);
///   - if sums of bytes could leave 64 bits, bytes and limits are counted in the largest unit of which all are multiples.
/// Throws InputError if such sums could still leave 64 bits.
void simplify_memory(ReductionGraph& graph);

}  // namespace shardplan
