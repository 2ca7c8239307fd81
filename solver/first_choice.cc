#include "solver/first_choice.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/integer.h"

namespace shardplan {
namespace {

/// What a strategy costs and holds, without its neighbours.
struct OwnFigures {
  bool is_forbidden = false;
  std::int64_t cost = 0;
  Int128 bytes = 0;
};

OwnFigures own_figures(const StrategyProblem& problem, const ProblemNode& node, std::size_t strategy,
                       const Objective& objective) {
  OwnFigures figures;
  Evaluation alone;
  alone.cost = problem.strategy_tables[node.strategies].costs[strategy];
  figures.is_forbidden = alone.cost.computation >= kForbidden || alone.cost.communication >= kForbidden;
  figures.cost = alone.value(objective);
  for (const MemoryUse& use : node.memory) {
    if (use.begin < use.end) figures.bytes += problem.usage_tables[use.usage].bytes[strategy];
  }
  return figures;
}

/// For each node the strategy of the least rank, a function of its figures; the first of several.
template <class Rank>
Choice least_choice(const StrategyProblem& problem, const Objective& objective, const Rank& rank) {
  Choice choice;
  choice.strategy.reserve(problem.nodes.size());
  for (const NodeId id : problem.nodes.ids()) {
    const ProblemNode& node = problem.nodes[id];
    std::size_t best = 0;
    auto least = rank(own_figures(problem, node, 0, objective));
    for (std::size_t strategy = 1; strategy < problem.num_strategies(id); ++strategy) {
      const auto other = rank(own_figures(problem, node, strategy, objective));
      if (!(other < least)) continue;
      least = other;
      best = strategy;
    }
    choice.strategy.push_back(StrategyId(best));
  }
  return choice;
}

}  // namespace

Choice least_bytes_choice(const StrategyProblem& problem, const Objective& objective) {
  return least_choice(problem, objective,
                      [](const OwnFigures& own) { return std::tuple(own.is_forbidden, own.bytes, own.cost); });
}

Choice least_cost_choice(const StrategyProblem& problem, const Objective& objective) {
  return least_choice(problem, objective,
                      [](const OwnFigures& own) { return std::tuple(own.is_forbidden, own.cost, own.bytes); });
}

PlanResult first_answer(const StrategyProblem& problem, const Objective& objective) {
  PlanResult result;
  const auto offer = [&](Choice choice, const char* name) {
    const Evaluation evaluation = evaluate(problem, choice);
    const std::int64_t cost = evaluation.value(objective);
    const std::int64_t most =
        result.choice ? result.cost : std::numeric_limits<std::int64_t>::max();  // may be saturated
    if (!evaluation.feasible || cost >= most) return;
    result.status = PlanStatus::kFeasible;
    result.choice = std::move(choice);
    result.cost = cost;
    result.found_by = name;
  };
  offer(least_cost_choice(problem, objective), "least costs");
  offer(least_bytes_choice(problem, objective), "least bytes");
  return result;
}

PlanResult better_answer(const PlanResult& first, PlanResult result) {
  if (!first.choice || (result.choice && result.cost <= first.cost)) return result;
  result.choice = first.choice;
  result.cost = first.cost;
  result.found_by = first.found_by;
  result.seconds_to_best = first.seconds_to_best;
  result.lower_bound = std::min(result.lower_bound, result.cost);
  const bool is_proven = result.lower_bound == result.cost;
  result.status = is_proven ? PlanStatus::kOptimal : PlanStatus::kFeasible;
  if (is_proven) result.stopped_by.reset();
  return result;
}

}  // namespace shardplan
