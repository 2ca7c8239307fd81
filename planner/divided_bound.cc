#include "planner/divided_bound.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

namespace shardplan {
namespace {

/// What a node computes in a step with its cheapest strategy; forbidden ones are ignored.
Picoseconds least_cost(const StrategyProblem& problem, NodeId node) {
  std::optional<Picoseconds> least;
  for (const Cost& cost : problem.strategy_tables[problem.nodes[node].strategies].costs) {
    if (cost.communication >= kForbidden) continue;
    least = std::min(least.value_or(cost.computation), cost.computation);
  }
  return least.value_or(0);
}

}  // namespace

Picoseconds least_divided_step(const OperatorGraph& graph, const ModelProblem& problem, int workers) {
  const std::size_t count = graph.operators().size();
  // A recomputed copy has its original's node, which counts both. A node of several workers is attributed to none.
  IdVector<NodeId, std::optional<OperatorId>> first(problem.problem.nodes.size());
  IdVector<NodeId, char> is_common(problem.problem.nodes.size(), 0), is_divided(problem.problem.nodes.size(), 0);
  for (const OperatorId op : graph.operators().ids()) {
    const NodeId node = problem.operator_nodes[op];
    if (first[node]) {
      is_common[node] = 1;
      if (graph.operators()[*first[node]].worker != graph.operators()[op].worker) is_divided[node] = 1;
    } else {
      first[node] = op;
    }
  }
  IdVector<OperatorId, Picoseconds> alone(count, 0);  // in one run, if the node belongs to no other operator
  std::vector<Picoseconds> busy(static_cast<std::size_t>(workers), 0);
  for (const OperatorId op : graph.operators().ids()) {
    const NodeId node = problem.operator_nodes[op];
    if (first[node] != op) continue;
    const Picoseconds time = least_cost(problem.problem, node);
    if (!is_divided[node]) busy[static_cast<std::size_t>(graph.operators()[op].worker)] += time;
    if (!is_common[node]) alone[op] = time / graph.runs(op);
  }
  IdVector<OperatorId, Picoseconds> before(count, 0), behind(count, 0);
  for (const OperatorId op : graph.operators().ids()) {
    for (const TensorId operand : graph.operators()[op].operands) {
      const std::optional<OperatorId>& producer = graph.tensor(operand).producer;
      if (producer) before[op] = std::max(before[op], before[*producer] + alone[*producer]);
    }
  }
  for (std::size_t i = count; i-- > 0;) {
    const OperatorId op(i);
    for (const TensorId operand : graph.operators()[op].operands) {
      const std::optional<OperatorId>& producer = graph.tensor(operand).producer;
      if (producer) behind[*producer] = std::max(behind[*producer], behind[op] + alone[op]);
    }
  }
  constexpr Picoseconds kNone = std::numeric_limits<Picoseconds>::max();
  std::vector<Picoseconds> shortest_before(busy.size(), kNone), shortest_behind(busy.size(), kNone);
  Picoseconds bound = 0;
  for (const OperatorId op : graph.operators().ids()) {
    const auto worker = static_cast<std::size_t>(graph.operators()[op].worker);
    shortest_before[worker] = std::min(shortest_before[worker], before[op]);
    shortest_behind[worker] = std::min(shortest_behind[worker], behind[op]);
    bound = std::max(bound, before[op] + alone[op] + behind[op]);
  }
  for (std::size_t worker = 0; worker < busy.size(); ++worker) {
    if (shortest_before[worker] == kNone) continue;  // it has no operator
    bound = std::max(bound, shortest_before[worker] + busy[worker] + shortest_behind[worker]);
  }
  return bound;
}

}  // namespace shardplan
