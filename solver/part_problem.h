#pragma once

#include <optional>
#include <span>
#include <vector>

#include "solver/strategy_problem.h"

namespace shardplan {

/// The problem in which some nodes of a larger one are free, and all others keep the strategies of a known choice:
///
///     evaluate(whole, part.expanded(choice))  ==  evaluate(part.problem, choice) + a constant
///
/// in cost; one is feasible if and only if the other is.
struct PartProblem {
  StrategyProblem problem;
  std::vector<NodeId> nodes;  // of the whole problem, by node of this one
  Choice known;               // of the whole problem

  Choice expanded(const Choice& choice) const;
  Choice start() const;  // as in the known choice
};

/// Time: linear in the entries of the part's edges, and in the memory uses of the whole. Nothing if the known choice is
/// not feasible.
std::optional<PartProblem> part_problem(const StrategyProblem& whole, const Choice& known,
                                        std::span<const NodeId> part);

}  // namespace shardplan
