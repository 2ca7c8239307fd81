#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// The forward operators as a graph in Graphviz's language, for `dot -Tsvg`: copies of a repeat are one node with their
/// count, a node says its operator's type and the layout of its result, and an edge the collectives on the way.
std::string dot_graph(const Plan& plan);

}  // namespace shardplan
