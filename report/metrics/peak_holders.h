#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The tensors alive at the peak, summed by kind and outermost block: {"activations of layers.*", bytes}, largest
/// first. The bytes sum to the peak.
std::vector<std::pair<std::string, Bytes>> peak_holders(const Plan& plan);

}  // namespace shardplan
