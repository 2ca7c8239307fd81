#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "solver/core/core_problem.h"
#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// A reduced problem as flat arrays for the searches.
struct BuiltCore {
  CoreProblem core;
  std::vector<std::uint32_t> nodes;  // by node of the core: the node of the graph
  /// Whether every feasible choice costs less than `core.big_m`; then a core whose cheapest choice costs that much is
  /// infeasible.
  bool is_infeasibility_certain = true;
};

/// Requires a graph that is not infeasible, with simplified memory. Moves each node's least cost to the constant.
/// `known_cost`: the cost of a feasible choice of the full problem; big-M is then one more than any better choice can
/// cost. The graph loses its edges: tables are freed as matrices are made of them. If time is over before the end, the
/// graph gives up, and the core is not to be used.
BuiltCore build_core(ReductionGraph& graph, std::optional<std::int64_t> known_cost);

/// The matrix of a table, its equal rows and columns classed; forbidden entries become `big_m`.
CoreMatrix make_core_matrix(const CostMatrix& table, double big_m);

}  // namespace shardplan
