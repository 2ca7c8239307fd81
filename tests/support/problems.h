#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/random.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// Calls `visit(choice)` for every choice of a problem, feasible or not.
void for_each_choice(const StrategyProblem& problem, const std::function<void(const Choice&)>& visit);

/// The least cost of a problem by trying all choices; nothing if none is feasible. Shares no code with the searches.
std::optional<std::int64_t> brute_force(const StrategyProblem& problem, const Objective& objective = {});

/// The kind of small random problem to make; each kind is hard in its own way.
struct RandomProblemOptions {
  std::size_t max_nodes = 6;
  std::size_t max_strategies = 4;
  int forbidden_percent = 20;  // of edge entries
  int edge_percent = 50;       // of pairs of nodes; some pairs get several edges
  int limit_percent = 60;      // between the least and the largest usage at each time; above 100: no limit binds
  std::int64_t largest_cost = 20;
  std::uint32_t times = 6;
};
StrategyProblem random_problem(Random& random, const RandomProblemOptions& options);
/// Random options: tight or loose memory, many forbidden pairs or none, single strategies, and so on.
RandomProblemOptions random_options(Random& random);

/// `layers` equal layers: a chain of `width` operators with `strategies` each, every second one read again `skip` nodes
/// later, elementwise ones tied to their operand. `training` adds a backward chain that reads the results of the
/// forward chain. The memory limit is `limit_percent` of the way from the least to the largest usage.
struct LayeredProblemOptions {
  std::size_t layers = 12;
  std::size_t width = 20;
  std::size_t strategies = 64;
  bool training = false;
  int limit_percent = 200;
};
StrategyProblem layered_problem(const LayeredProblemOptions& options);

/// A problem of `copies` equal layers, forward and backward, between a node before and a node after them, and the sets
/// of corresponding nodes: node k of a layer corresponds to node k of every other. Nodes hold bytes while they run,
/// from the forward to the backward pass, from there to the end, or all the time. `limit_percent` is as in
/// RandomProblemOptions.
struct RepeatedProblem {
  StrategyProblem problem;
  IdVector<NodeId, NodeId> ties;
};
RepeatedProblem random_repeated_problem(Random& random, std::size_t copies, std::size_t width,
                                        std::size_t max_strategies, int limit_percent);

/// A strategy for every node; the choice may be infeasible.
Choice random_choice(const StrategyProblem& problem, Random& random);

/// A text with all numbers of a problem, for failure messages.
std::string describe(const StrategyProblem& problem);

}  // namespace shardplan
