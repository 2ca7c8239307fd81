#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The axes that shard a model's batch, heads, ...: those that shard most of the operators or bytes concerned.
struct ParallelismPatterns {
  /// How most of the work of products with weights is cut, but for a vocabulary's and for stacked weights by expert. One
  /// axis is never in two of these.
  std::vector<AxisRef> batch, context, weights;
  std::vector<AxisRef> sequence;  // of norms: with `context` also where weights are used, else around norms only
  std::vector<AxisRef> heads, vocabulary;
  std::vector<AxisRef> columns;             // of the looked-up tables, if these are most of the weights' bytes
  std::vector<AxisRef> queries, keys;       // positions of fused attention
  std::vector<std::vector<AxisRef>> image;  // by dimension through which convolutions slide, the innermost first
  std::vector<AxisRef> stacked;             // weights with one matrix for each expert, by expert
  std::vector<AxisRef> gathered;   // shard most of the weights where they are stored, but not where they are used
  std::vector<AxisRef> states;     // shard most of the optimizer states, further than their weights are used
  bool states_as_weights = false;  // the states are sharded as the gathered weights are
};
ParallelismPatterns find_parallelism_patterns(const Plan& plan);

/// The stage of ZeRO in a training plan: 3 if most weights are gathered where they are used, else 2 if the optimizer
/// states are sharded further than the weights and so are the gradients (their sums over micro-batches) that wait for
/// an update, 1 if only the states are, 0 if nothing is. Without micro-batches a gradient is usually reduced into the
/// pieces that its update reads as soon as it is made: stage 2.
int zero_stage(const Plan& plan, const ParallelismPatterns& patterns);

/// The named patterns of a plan: "batch in 8, vocabulary in 4 over hccs, optimizer states in 8 (as ZeRO-2)". Known are
/// batch, height and width of images, sequence, queries and keys (context parallelism), heads, stacked weights (expert
/// parallelism), weights (tensor parallelism), vocabulary, columns of embedding tables, and ZeRO; a pattern is named if
/// most of the operators or bytes concerned follow it. Empty if there is none.
std::string parallelism_patterns(const Plan& plan);

}  // namespace shardplan
