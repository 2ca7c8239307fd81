#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The keys of the model file that determine the layouts of an operator's parameters, gradients, states and kept
/// activations, each with its effect, in this order:
///
///   zero: 3 (m.yaml:9:12) stores w in 8 pieces; this gathers it                         forward readers of w
///   reshard_after_forward: true gathers w again for the backward pass                   backward readers of w
///   zero: 2 (m.yaml:9:12) sums the gradient of w in 8 pieces, with every micro-batch    operator that sums
///   gather_again: true gathers norm again for the backward pass                         backward readers of norm
///   gradient_accumulation_shard: false (m.yaml:9:21) sums the gradient of w on each device, over the devices once a step
///   zero: 1 (m.yaml:9:12) keeps the states of w in 8 pieces                             updates
///   w: state_strategy (m.yaml:4:29)                                                     updates and sums (user's)
///
/// Empty if no such key applies: everything was searched, or no two devices hold the same data.
std::vector<std::string> layout_reasons(const Plan& plan, OperatorId op);

}  // namespace shardplan
