#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The axes that cut a model's batch, heads, ...; each is what most of the operators or bytes that it concerns do.
struct ParallelismPatterns {
  std::vector<AxisRef> batch, sequence, heads, weights, vocabulary;
  std::vector<AxisRef> gathered;   // that cut most of the weights where they are stored, but not where they are used
  std::vector<AxisRef> states;     // that cut most of the optimizer's states, further than their weights
  bool states_as_weights = false;  // the states are cut as the gathered weights are
};
ParallelismPatterns find_parallelism_patterns(const Plan& plan);

/// The patterns in a plan that have a name: "batch in 8, vocabulary in 4 over hccs, optimizer states in 8 (as ZeRO-1)".
/// Known are batch, sequence, heads, weights (tensor parallelism), vocabulary, and ZeRO; each is what most of the
/// operators or bytes that it concerns do. Empty if there is none.
std::string parallelism_patterns(const Plan& plan);

}  // namespace shardplan
