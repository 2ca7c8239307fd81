#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// The forward operators as a graph in Graphviz's language, for `dot -Tsvg`. The copies of a repeat are one node with
/// their number. A node shows its operator's type and the layout of its result, an edge the collectives along it.
std::string dot_graph(const Plan& plan);

}  // namespace shardplan
