#include "solver/searches/propagation_search.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "base/integer.h"
#include "solver/core/move_state.h"
#include "solver/incumbent.h"
#include "solver/presolve/presolve.h"

namespace shardplan {
namespace {

std::int64_t own_cost(const Cost& cost, const Objective& objective) {
  Evaluation item;
  item.cost = cost;
  if (cost.computation >= kForbidden || cost.communication >= kForbidden)
    return std::numeric_limits<std::int64_t>::max();
  return item.value(objective);
}

/// The choice of the single pass. It avoids forbidden pairs at the edge by which it reaches a node; at other edges of
/// the node they can remain.
Choice propagate(const StrategyProblem& problem, const Objective& objective) {
  const std::size_t count = problem.nodes.size();
  std::vector<std::vector<EdgeId>> edges(count);
  for (const EdgeId edge : problem.edges.ids()) {
    edges[problem.edges[edge].from.value()].push_back(edge);
    edges[problem.edges[edge].to.value()].push_back(edge);
  }
  const auto cost = [&](NodeId node, std::size_t strategy) {
    return own_cost(problem.strategy_tables[problem.nodes[node].strategies].costs[strategy], objective);
  };
  const auto cheapest = [&](NodeId node) {
    std::size_t best = 0;
    for (std::size_t s = 1; s < problem.num_strategies(node); ++s) best = cost(node, s) < cost(node, best) ? s : best;
    return best;
  };
  Choice choice;
  choice.strategy.resize(count, StrategyId(0));
  std::vector<bool> is_set(count, false);
  std::deque<std::size_t> queue;
  for (const NodeId node : problem.nodes.ids()) {
    if (problem.num_strategies(node) != 1) continue;
    is_set[node.value()] = true;
    queue.push_back(node.value());
  }
  // Components without a fixed node start at the node whose cheapest strategy costs most.
  std::vector<std::size_t> by_cost(count);
  for (std::size_t i = 0; i < count; ++i) by_cost[i] = i;
  std::vector<std::int64_t> least(count);
  for (const NodeId node : problem.nodes.ids()) least[node.value()] = cost(node, cheapest(node));
  std::stable_sort(by_cost.begin(), by_cost.end(), [&](std::size_t a, std::size_t b) { return least[a] > least[b]; });
  for (std::size_t next = 0;;) {
    if (queue.empty()) {
      while (next < count && is_set[by_cost[next]]) ++next;
      if (next == count) return choice;
      const std::size_t node = by_cost[next];
      is_set[node] = true;
      choice.strategy[NodeId(node)] = StrategyId(cheapest(NodeId(node)));
      queue.push_back(node);
    }
    const std::size_t at = queue.front();
    queue.pop_front();
    for (const EdgeId id : edges[at]) {
      const ProblemEdge& edge = problem.edges[id];
      const bool is_from = edge.from.value() == at;
      const NodeId other = is_from ? edge.to : edge.from;
      if (is_set[other.value()]) continue;
      const CostMatrix& matrix = problem.matrices[edge.matrix];
      const std::size_t own = choice.strategy[NodeId(at)].value();
      const auto rank = [&](std::size_t s) {
        const std::int64_t own_costs = cost(other, s);
        const std::int64_t communication = matrix.costs[is_from ? own * matrix.columns + s : s * matrix.columns + own];
        return std::tuple(own_costs == std::numeric_limits<std::int64_t>::max(), communication, own_costs, s);
      };
      std::size_t best = 0;
      for (std::size_t s = 1; s < problem.num_strategies(other); ++s) best = rank(s) < rank(best) ? s : best;
      is_set[other.value()] = true;
      choice.strategy[other] = StrategyId(best);
      queue.push_back(other.value());
    }
  }
}

/// The sum of the minima of all nodes and edges: a bound, since no choice can be better anywhere.
std::int64_t least_sum(const StrategyProblem& problem, const Objective& objective) {
  Int128 sum = 0;
  std::vector<std::int64_t> of_table, of_matrix;
  for (const StrategyTable& table : problem.strategy_tables) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Cost& cost : table.costs) least = std::min(least, own_cost(cost, objective));
    of_table.push_back(least);
  }
  for (const CostMatrix& matrix : problem.matrices) {
    of_matrix.push_back(own_cost({0, *std::min_element(matrix.costs.begin(), matrix.costs.end())}, objective));
  }
  for (const ProblemNode& node : problem.nodes) sum += of_table[node.strategies.value()];
  for (const ProblemEdge& edge : problem.edges) sum += of_matrix[edge.matrix.value()];
  return static_cast<std::int64_t>(std::min<Int128>(sum, std::numeric_limits<std::int64_t>::max()));
}

class PropagationSearch : public Search {
 public:
  PlanResult search(const StrategyProblem& problem, const SearchOptions& options) const override {
    const Deadline deadline(options.limits.seconds, options.limits.stop);
    Incumbent incumbent(problem, options, deadline);
    incumbent.raise_bound(least_sum(problem, options.objective));
    std::vector<Choice> first = {propagate(problem, options.objective)};
    if (options.start) first.push_back(*options.start);
    for (const Choice& choice : first) incumbent.offer(choice, kStage);
    incumbent.report();
    return incumbent.result(improve(problem, options, deadline, first, incumbent));
  }

 private:
  static constexpr std::string_view kStage = "propagation";
  static constexpr std::uint64_t kUsualWork = std::uint64_t{1} << 32;

  /// On the reduced problem, where each node stands for all that depend on it: repairs forbidden pairs and exceeded
  /// limits, then moves single nodes to what is cheapest beside their neighbours. Returns what cut that short.
  static std::optional<Limit> improve(const StrategyProblem& problem, const SearchOptions& options,
                                      const Deadline& deadline, const std::vector<Choice>& first,
                                      Incumbent& incumbent) {
    const Presolve presolve(problem, options.objective, deadline);
    incumbent.report(&presolve.statistics());
    if (presolve.is_infeasible()) {
      if (!presolve.is_infeasibility_certain()) return deadline.reached();
      incumbent.set_infeasible();
      return std::nullopt;
    }
    const CoreProblem& core = presolve.core();
    if (core.num_nodes() == 0) {
      incumbent.offer(presolve.expand({}), kStage);
      return std::nullopt;
    }
    std::vector<CoreChoice> starts;
    for (const Choice& choice : first) starts.push_back(presolve.project(choice));
    starts.push_back(fewest_bytes_choice(core));
    WorkMeter meter(deadline, options.limits.work > 0 ? options.limits.work : kUsualWork);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      // Taking the fewest bytes is the last resort.
      if (i + 1 == starts.size() && incumbent.has_choice()) break;
      MoveState state(core, starts[i]);
      for (int round = 0; round < 4 && !state.is_feasible(); ++round) {
        if (!state.repair(meter)) break;
        if (state.cost() >= core.big_m) state.descend(meter);
      }
      if (!state.is_feasible()) continue;
      state.descend(meter);
      incumbent.offer(presolve.expand(state.choice()), kStage);
      incumbent.report();
    }
    if (!incumbent.has_choice()) incumbent.set_obstacle("no start could be repaired by moves of single nodes");
    return meter.stopped_by();
  }
};

}  // namespace

std::unique_ptr<Search> make_propagation_search() { return std::make_unique<PropagationSearch>(); }

}  // namespace shardplan
