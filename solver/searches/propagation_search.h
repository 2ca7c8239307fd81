#pragma once

#include <memory>

#include "solver/search.h"

namespace shardplan {

/// "propagation": one pass through the graph, as in sharding propagation. It starts at the nodes with a single
/// strategy (the user's), or else at the node whose least cost is largest, and proceeds along the edges: each
/// neighbour takes the strategy with the least communication on the edge by which it is reached, then with the least
/// own cost, then the first. If memory limits are violated, single nodes are moved; then single nodes move to cheaper
/// strategies given their neighbours. A given start is improved in the same way, and the better of the two is the
/// answer. The bound is the sum of the minima of all nodes and edges.
std::unique_ptr<Search> make_propagation_search();

}  // namespace shardplan
