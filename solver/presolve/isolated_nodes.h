#pragma once

#include <cstddef>

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// A node without edges takes its cheapest value if that uses the fewest bytes at every time, too. Returns how many
/// nodes were decided.
std::size_t fix_isolated_nodes(ReductionGraph& graph);

}  // namespace shardplan
