#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// strategies.txt: one line per operator in program order, for diff:
///   block1.dense1.matmul  ((1, 8), (1, 8)) -> [{}, {}] unreduced={pcie, hccs}  search
/// Inputs as tuples, or as layouts where no tuple says them; results as layouts; who decided, as `strategy_origin` has it, and
/// behind "follows" whom.
std::string strategy_table(const Plan& plan);

/// "user"; "default": by the mode; "follows": by what the mode or the user says of another operator or a parameter; "search".
std::string_view strategy_origin(const Plan& plan, OperatorId op);

/// The forward operator whose strategy a backward one follows, the parameter as which its update is laid out; empty where
/// an operator follows none.
std::string followed_name(const Plan& plan, OperatorId op);

}  // namespace shardplan
