#pragma once

#include "solver/search.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// Two choices that follow from each node alone. Forbidden strategies come last.
///
/// The least bytes of all live ranges together; of equal ones the least cost. If each node holds memory over one range
/// only and this choice does not fit, none without forbidden strategies does.
Choice least_bytes_choice(const StrategyProblem& problem, const Objective& objective);
/// The least cost; of equal ones the least bytes.
Choice least_cost_choice(const StrategyProblem& problem, const Objective& objective);

/// The cheaper feasible one of these choices as an answer, if there is one. It is known as soon as a problem is read,
/// and so is there if time is too short for a search. Requires check_problem(problem).
PlanResult first_answer(const StrategyProblem& problem, const Objective& objective);

/// The result of a search, or the first answer where that is better.
PlanResult better_answer(const PlanResult& first, PlanResult result);

}  // namespace shardplan
