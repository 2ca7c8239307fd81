#pragma once

#include "graph/operator_graph.h"

namespace shardplan {

/// The training graph in which what is marked `recompute` keeps nothing for the backward pass: forward operators run again as
/// copies (of the backward pass, named "recompute.OPERATOR").
///
/// - A block: just before the first backward operator that needs its inner tensors, the operators that produce them run again
///   from the block's inputs; backward operators of the block read the copies. A tensor kept for use outside the block, as its
///   output is, is not recomputed (PyTorch's checkpoint, MindSpore's Cell.recompute).
/// - An operator that is marked by itself: it runs again just before the first backward operator, of any block, that needs its
///   results, after the copies of marked operators that it reads (JAX's policies, MindSpore's Primitive.recompute).
/// - Only what the backward pass needs is copied; outputs of the model are kept.
/// - A copy follows its original's strategy (planner/problem/model_problem.h) and draws the same numbers
///   (`operator_seed`).
/// - A copy stores nothing: running statistics are updated once.
OperatorGraph recompute_marked(OperatorGraph training);

}  // namespace shardplan
