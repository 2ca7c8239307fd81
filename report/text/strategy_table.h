#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// strategies.txt: one line per operator in program order, for diff:
///   block1.dense1.matmul  ((1, 8), (1, 8)) -> [{}, {}] unreduced={pcie, hccs}  search
/// Inputs are tuples, or layouts where no tuple expresses them; results are layouts. The last column is the origin, as
/// in `strategy_origin`; after "follows" comes the followed operator.
std::string strategy_table(const Plan& plan);

/// "user"; "default": from the mode; "follows": another operator or a parameter set by the mode or the user; "search".
std::string_view strategy_origin(const Plan& plan, OperatorId op);

/// The forward operator whose strategy a backward operator follows, or the parameter whose layout an update follows;
/// empty for an operator that follows none.
std::string followed_name(const Plan& plan, OperatorId op);

}  // namespace shardplan
