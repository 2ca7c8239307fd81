#pragma once

#include "graph/operator_graph.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// No choice of the problem, divided among the workers that `place` gives its operators, makes a step that takes less:
/// before a worker's first operator comes at least the shortest of the longest paths that lead to one of its operators,
/// then all that it computes, then the shortest of the longest paths behind one. Every operator counts with the
/// strategy that computes least; collectives, sends and waiting for other workers count nothing. `workers` exceeds every
/// operator's worker.
Picoseconds least_divided_step(const OperatorGraph& graph, const ModelProblem& problem, int workers);

}  // namespace shardplan
