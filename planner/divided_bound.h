#pragma once

#include "graph/operator_graph.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// A lower bound on the step of any choice of the problem divided among the workers that `place` assigns. For each
/// worker: the shortest, over its operators, of the longest paths that lead to them, plus everything it computes,
/// plus the shortest of the longest paths that follow. Every operator counts with the strategy that computes fastest;
/// collectives, sends and waiting count nothing. `workers` exceeds every operator's worker number.
Picoseconds least_divided_step(const OperatorGraph& graph, const ModelProblem& problem, int workers);

}  // namespace shardplan
