#pragma once

#include <memory>

#include "solver/search.h"

namespace shardplan {

/// "propagation": one pass through the graph, as users know it from sharding propagation. From the nodes that have a
/// single strategy (a user's), or else the node whose least cost is the largest, outwards along the edges: each
/// neighbour takes the strategy of least communication on the edge by which it is reached, then of least own cost, then
/// the first. Where the memory limits break, single nodes are moved; then single nodes move to what is cheaper beside
/// their neighbours. The same is done to a given start, and the better of the two is the answer. Bounds come from the
/// least of each node and edge.
std::unique_ptr<Search> make_propagation_search();

}  // namespace shardplan
