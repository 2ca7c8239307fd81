#pragma once

#include <optional>
#include <string>

#include "planner/plan.h"

namespace shardplan {

// Attribution of a step's time to operators. A collective counts for the operator that requires it: the one that reads
// its result, or else the one that produces its input.

/// The operator to which an instruction's time is attributed; empty if only inputs and stored tensors are moved.
std::optional<OperatorId> spender(const Plan& plan, const Instruction& instruction);

/// The model's block to which an operator of the training graph belongs, folded: "layers.*" for layers.3.up.matmul, its
/// gradient and the update of its weight.
std::string folded_block(const OperatorGraph& graph, OperatorId op);

}  // namespace shardplan
