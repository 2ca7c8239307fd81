#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "solver/strategy_problem.h"

namespace shardplan {

/// A problem in which certain nodes take the same strategy: the copies of a repeated layer. A set of tied nodes is one
/// node, whatever their number:
///
///     evaluate(tied.problem, choice)  ==  evaluate(problem, tied.expanded(choice))
///
/// in cost, feasibility, peak and excess, for every choice, as long as its sums stay below kForbidden. (What is forbidden
/// counts once, and of several times of one peak another may be named.)
///
/// - Costs of tied nodes add up, and so do the matrices of edges between the same two sets. An edge within a set is paid on
///   its diagonal, as a cost of the node.
/// - Uses of equal lives add up. Times at which a repeating schedule cannot be fullest are left out (periodic_times.h), so that
///   the problem of 10,000 layers is as large as that of a few.
struct TiedProblem {
  StrategyProblem problem;
  IdVector<NodeId, NodeId> node;     // what decides each of the original's nodes
  std::vector<std::uint32_t> times;  // the original's time of each of the problem's
  /// By the original's time: two of the problem's, of which the fuller holds no less, whatever the choice.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> between;

  /// The same choice, for the original.
  Choice expanded(const Choice& choice) const;
  /// The other way around, of a choice in which tied nodes take the same strategy.
  Choice tied(const Choice& choice) const;
};

/// `ties` gives every node the number of its set; sets are numbered without a gap, and a set's nodes have equally many
/// strategies. Linear in the problem, but for tables of equal sums, which are made once.
TiedProblem tied_problem(const StrategyProblem& problem, const IdVector<NodeId, NodeId>& ties);

}  // namespace shardplan
