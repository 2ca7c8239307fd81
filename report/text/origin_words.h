#pragma once

#include <string>
#include <string_view>

#include "planner/plan.h"

namespace shardplan {

/// Where an instruction comes from, in the names of the user's model; repeats are folded to '*'.

/// "layers.*" of "layers.3.attn.qkv.matmul".
std::string folded_block(std::string_view name);

/// The model's name for an operator of the training graph: the name of a backward operator's forward operator, and
/// "head.weight.ApplyAdam" for the update of head.weight.
std::string model_name(const OperatorGraph& graph, const std::string& name);

/// What a collective moves: "gradients" and "updated weights" of parameters, "weights" as they are stored, "states" of the
/// optimizer, "inputs", "activations" (in the backward pass, their gradients).
std::string_view moved_words(const Plan& plan, const Instruction& instruction);

/// Why a collective is there: "gradients of layers.*", "norm_f -> head", "backward of sum of head".
std::string origin_words(const Plan& plan, const Instruction& instruction);

}  // namespace shardplan
