#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "solver/strategy_problem.h"

namespace shardplan {

/// Feasible choices between `center` and others (partition crossover: Whitley, Hains, Howe, GECCO 2009). The nodes in
/// which another choice differs from `center` form components that no edge joins, so each can be taken by itself at
/// the cost that it has in the other choice. For every other choice these are: `center` with one component of it, and
/// the other choice without one component. No choice is returned twice, and neither `center` nor one of `others` is.
/// Only the `most_parts` largest components of a choice are taken by themselves.
///
/// Time: for every other choice at most 2 * `most_parts` evaluations of the problem.
std::vector<Choice> crossed_choices(const StrategyProblem& problem, const Choice& center,
                                    std::span<const Choice> others, std::size_t most_parts);

}  // namespace shardplan
