#pragma once

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// Time compression: keeps only the times whose limit can bind, and renumbers the segments. A time goes
///   - if even the largest usages fit there;
///   - if a kept time before it (or after it) implies it: the bytes of no choice rise by more from the one to the other
///     than the limit does, where the sum of each node's largest rise says how much they can rise.
/// A model has a time for each operator, but its memory peaks at few of them: of 29,113 times of the contest's problem M
/// 2,976 are left. Requires disjoint segments in order, and limits that hold what every choice takes (`simplify_memory`).
void compress_times(ReductionGraph& graph);

}  // namespace shardplan
