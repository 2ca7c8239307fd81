#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "solver/presolve/reduction_graph.h"

namespace shardplan {

/// What a choice of the values that are left in a graph costs by the graph's own numbers; nothing if it has a forbidden
/// pair or a marked value.
std::optional<std::int64_t> cost_in_graph(ReductionGraph& graph, const std::vector<std::uint32_t>& values);
/// Whether what it holds by the graph's own numbers is within the graph's limits; fixed memory counts.
bool fits_in_graph(ReductionGraph& graph, const std::vector<std::uint32_t>& values);

/// Calls `visit(values)` for all choices of the values that are left; values of removed nodes are 0.
void for_each_values(const ReductionGraph& graph, const std::function<void(const std::vector<std::uint32_t>&)>& visit);

/// What every rule promises, tried on all choices that are left: each that the graph allows is feasible in the problem
/// and costs there what the graph says, and the cheapest is as cheap as the problem's brute-force optimum. Reports
/// failures to the running test.
void expect_exact(const StrategyProblem& problem, ReductionGraph& graph);

/// Calls `visit` with a random problem of each seed below `seeds` and its graph, settled and not infeasible. Ends after the
/// first seed that fails, and names it.
void for_random_graphs(std::uint64_t seeds,
                       const std::function<void(const StrategyProblem& problem, ReductionGraph& graph)>& visit);

/// A graph of the problem, settled, without a time limit.
ReductionGraph graph_of(const StrategyProblem& problem, bool with_memory = true);

}  // namespace shardplan
