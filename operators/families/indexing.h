#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Operators that read or make integers which count positions.
///
///   Gather(params, indices)              rows of `params` along `axis`, one per index: "v h, b s -> b s h". Cut along v,
///                                        each device gives the rows it has and zeros for the others, a partial sum.
///                                        Indices outside give zeros.
///   UnsortedSegmentSum(x, segment_ids)   adds rows up, each to the segment that its id names; ids outside add nothing
///   OneHot(indices)                      a new dimension of `depth` at `axis`, its cut computed from the box, without
///                                        communication
///   Range()                              start, start + delta, ... below limit, without operands
std::vector<OperatorType> indexing_operators();

}  // namespace shardplan
