#pragma once

#include <optional>
#include <string>

#include "planner/plan.h"

namespace shardplan {

// For whom a step's time is spent. A collective is counted with the operator that asked for it: the one that reads what it
// delivers, else the one that makes what it moves.

/// The operator that an instruction's time is spent for; nothing for what moves inputs and stored tensors alone.
std::optional<OperatorId> spender(const Plan& plan, const Instruction& instruction);

/// The model's block that an operator of the training graph works for, folded: "layers.*" of layers.3.up.matmul, of its
/// gradient and of the update of its weight.
std::string folded_block(const OperatorGraph& graph, OperatorId op);

}  // namespace shardplan
