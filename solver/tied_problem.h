#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "solver/strategy_problem.h"

namespace shardplan {

/// A problem in which certain nodes take the same strategy: the copies of a repeated layer. A set of tied nodes
/// becomes one node, whatever its size:
///
///     evaluate(tied.problem, choice)  ==  evaluate(problem, tied.expanded(choice))
///
/// in cost, feasibility, peak and excess, for every choice, as long as sums stay below kForbidden. (A forbidden entry
/// counts once, and of several times with the same peak another may be named.)
///
/// - Costs of tied nodes are added, and so are the matrices of edges between the same two sets. An edge within a set
///   contributes its diagonal to the node's cost.
/// - Memory uses with equal live ranges are added. Times at which a periodic schedule cannot be fullest are omitted
///   (periodic_times.h), so the problem of 10,000 layers is as large as that of a few.
struct TiedProblem {
  StrategyProblem problem;
  IdVector<NodeId, NodeId> node;     // by node of the original: the node that decides it
  std::vector<std::uint32_t> times;  // by time of this problem: the original's time
  /// By time of the original: two times of this problem, the fuller of which holds at least as much for every choice.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> between;

  /// The corresponding choice of the original.
  Choice expanded(const Choice& choice) const;
  /// The inverse, for a choice in which tied nodes take the same strategy.
  Choice tied(const Choice& choice) const;
};

/// `ties` gives every node the number of its set; sets are numbered without gaps, and the nodes of a set have the
/// same number of strategies. Linear in the problem, except for tables of equal sums, which are created once.
TiedProblem tied_problem(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties);

}  // namespace shardplan
