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
  std::vector<AxisRef> queries, keys;       // positions of fused attention
  std::vector<std::vector<AxisRef>> image;  // by dimension through which convolutions slide, the innermost first
  std::vector<AxisRef> stacked;             // weights with one matrix for each expert, by expert
  std::vector<AxisRef> gathered;   // shard most of the weights where they are stored, but not where they are used
  std::vector<AxisRef> states;     // shard most of the optimizer states, further than their weights are used
  bool states_as_weights = false;  // the states are sharded as the gathered weights are
};
ParallelismPatterns find_parallelism_patterns(const Plan& plan);

/// Whether most bytes of the gradients (of their sums over micro-batches) are in as many pieces as the optimizer states.
bool gradients_are_cut(const Plan& plan);

/// The named patterns of a plan: "batch in 8, vocabulary in 4 over hccs, optimizer states in 8 (as ZeRO-1)". Known are
/// batch, height and width of images, sequence, queries and keys (context parallelism), heads, stacked weights (expert
/// parallelism), weights (tensor parallelism), vocabulary, and ZeRO; a pattern is named if most of the operators or bytes
/// concerned follow it. Empty if there is none.
std::string parallelism_patterns(const Plan& plan);

}  // namespace shardplan
