#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// The training graph in which blocks marked `recompute` keep nothing for the backward pass: just before the first
/// backward operator that needs one of a block's inner tensors, the operators that make them run again as copies
/// (of the backward pass, named "recompute.OPERATOR"), reading the block's inputs, and the backward operators of the block
/// read the copies.
///
/// - Only what backward needs is copied. A tensor that something outside of the block keeps anyway is not made again.
/// - A copy follows its original's strategy (planner/problem/model_problem.h) and draws what it drew (`operator_seed`).
/// - A copy stores nothing: running statistics are updated once.
OperatorGraph recompute_marked(OperatorGraph training);

}  // namespace shardplan
