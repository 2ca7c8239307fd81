#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// The training graph in which blocks marked `recompute` keep nothing for the backward pass. Just before the first
/// backward operator that needs a block's inner tensors, the operators that produce them run again as copies (of the
/// backward pass, named "recompute.OPERATOR") from the block's inputs; backward operators of the block read the copies.
///
/// - Only what the backward pass needs is copied. A tensor kept for use outside the block is not recomputed.
/// - A copy follows its original's strategy (planner/problem/model_problem.h) and draws the same numbers
///   (`operator_seed`).
/// - A copy stores nothing: running statistics are updated once.
OperatorGraph recompute_marked(OperatorGraph training);

}  // namespace shardplan
