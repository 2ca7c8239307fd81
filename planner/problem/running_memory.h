#pragma once

#include <vector>

#include "layouts/redistribution/redistribution_planner.h"
#include "planner/problem/layout_tables.h"
#include "planner/problem/problem_copies.h"
#include "planner/problem/problem_nodes.h"

namespace shardplan {

/// Adds what redistributions hold while they run to a problem with all copies (`held` is what `add_copies` returns).
///
/// A time of the schedule becomes several, one for each redistribution before its operator, in the order of the
/// program, and then the operator's own:
///
///     before    k                                        k + 1
///     after     versions made   operand 0   operand 1   k   ...
///
/// During a redistribution a step's input and output are in memory, beside everything that is there before and
/// after. What that is depends on the layouts at both ends, so every redistribution is a node, and there are about
/// three times as many times: for small problems, whose peak often is a redistribution. `ModelProblem::times` says
/// at which of the new times an operator runs. The peak of a choice remains a lower bound on what its program holds.
void add_running_memory(const CopiesInput& input, const LayoutTables& layouts, const std::vector<HeldOperand>& held,
                        RedistributionPlanner& redistributions, ModelProblem& model);

}  // namespace shardplan
