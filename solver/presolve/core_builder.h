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
  /// Whether every feasible choice costs less than `core.big_m`, so that a core whose cheapest choice costs that much has
  /// no feasible one.
  bool is_infeasibility_certain = true;
};

/// Requires a graph that is not infeasible, with simplified memory. Moves each node's least cost to the constant.
/// `known_cost`: of a feasible choice of the whole problem; the big-M is then one more than what a better one can cost.
BuiltCore build_core(ReductionGraph& graph, std::optional<std::int64_t> known_cost);

/// The matrix of a table, its equal rows and columns classed; forbidden entries become `big_m`.
CoreMatrix make_core_matrix(const CostMatrix& table, double big_m);

}  // namespace shardplan
