#pragma once

#include <string>

#include "planner/plan.h"

namespace shardplan {

/// strategies.txt: one line per operator in program order, for diff:
///   block1.dense1.matmul  ((1, 8), (1, 8)) -> [{}, {}] unreduced={pcie, hccs}  search
/// Inputs as tuples, or as layouts where no tuple says them; results as layouts; who decided: user, search or default.
std::string strategy_table(const Plan& plan);

/// "user", "default" (data parallel by mode) or "search".
std::string_view strategy_origin(const Plan& plan, OperatorId op);

}  // namespace shardplan
