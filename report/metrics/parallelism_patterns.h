#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// The patterns in a plan that have a name: "batch in 8, vocabulary in 4 over hccs, optimizer states in 8 (as ZeRO-1)".
/// Known are batch, sequence, heads, weights (tensor parallelism), vocabulary, and ZeRO; each is what most of the
/// operators or bytes that it concerns do. Empty if there is none.
std::string parallelism_patterns(const Plan& plan);

}  // namespace shardplan
