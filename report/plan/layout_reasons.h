#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The keys of the model that decide how an operator's parameters, gradients, states and kept activations lie, each with
/// what it does, in this order:
///
///   zero: 3 (m.yaml:9:12) stores w in 8 pieces; this gathers it                         forward readers of w
///   reshard_after_forward: true gathers w again for the backward pass                   backward readers of w
///   zero: 2 (m.yaml:9:12) sums the gradient of w in 8 pieces, with every micro-batch    what makes the sum
///   gather_again: true gathers norm again for the backward pass                         backward readers of norm
///   gradient_accumulation_shard: false (m.yaml:9:21) sums the gradient of w on each device, over the devices once a step
///   zero: 1 (m.yaml:9:12) keeps the states of w in 8 pieces                             updates
///   w: state_strategy (m.yaml:4:29)                                                     updates and sums that the user lays out
///
/// Empty where no such key decides: where all was searched, or the devices hold nothing alike.
std::vector<std::string> layout_reasons(const Plan& plan, OperatorId op);

}  // namespace shardplan
