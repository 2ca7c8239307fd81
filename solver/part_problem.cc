#include "solver/part_problem.h"

#include <algorithm>
#include <map>

namespace shardplan {
namespace {

void add_to(std::int64_t& cost, std::int64_t more) {
  cost = more >= kForbidden || cost >= kForbidden ? kForbidden : std::min(kForbidden, cost + more);
}

/// The limits less what the nodes hold that are not free.
std::vector<Bytes> limits_beside(const StrategyProblem& whole, const Choice& known,
                                 const IdVector<NodeId, std::optional<NodeId>>& number) {
  std::vector<Bytes> changes(whole.memory_limits.size() + 1, 0);
  for (const NodeId node : whole.nodes.ids()) {
    if (number[node]) continue;
    for (const MemoryUse& use : whole.nodes[node].memory) {
      if (use.begin >= use.end) continue;
      const Bytes held = whole.usage_tables[use.usage].bytes[known.strategy[node].value()];
      changes[use.begin] += held;
      changes[use.end] -= held;
    }
  }
  std::vector<Bytes> limits = whole.memory_limits;
  Bytes held = 0;
  for (std::size_t time = 0; time < limits.size(); ++time) {
    held += changes[time];
    if (limits[time] < kUnlimitedBytes) limits[time] -= held;
  }
  return limits;
}

}  // namespace

Choice PartProblem::expanded(const Choice& choice) const {
  Choice result = known;
  for (std::size_t i = 0; i < nodes.size(); ++i) result.strategy[nodes[i]] = choice.strategy[NodeId(i)];
  return result;
}

Choice PartProblem::start() const {
  Choice result;
  for (const NodeId node : nodes) result.strategy.push_back(known.strategy[node]);
  return result;
}

std::optional<PartProblem> part_problem(const StrategyProblem& whole, const Choice& known,
                                        std::span<const NodeId> part) {
  if (!evaluate(whole, known).feasible) return std::nullopt;
  PartProblem result;
  result.known = known;
  result.nodes.assign(part.begin(), part.end());
  StrategyProblem& problem = result.problem;
  problem.name = whole.name;
  IdVector<NodeId, std::optional<NodeId>> number(whole.nodes.size());
  std::map<UsageTableId, UsageTableId> usages;
  for (const NodeId node : part) {
    ProblemNode own = whole.nodes[node];
    own.strategies = problem.strategy_tables.push_back(whole.strategy_tables[own.strategies]);
    for (MemoryUse& use : own.memory) {
      const auto [known_usage, is_new] = usages.try_emplace(use.usage);
      if (is_new) known_usage->second = problem.usage_tables.push_back(whole.usage_tables[use.usage]);
      use.usage = known_usage->second;
    }
    number[node] = problem.nodes.push_back(std::move(own));
  }
  std::map<MatrixId, MatrixId> matrices;
  for (const ProblemEdge& edge : whole.edges) {
    const std::optional<NodeId> from = number[edge.from], to = number[edge.to];
    const CostMatrix& matrix = whole.matrices[edge.matrix];
    if (from && to) {
      const auto [known_matrix, is_new] = matrices.try_emplace(edge.matrix);
      if (is_new) known_matrix->second = problem.matrices.push_back(matrix);
      problem.edges.push_back({*from, *to, known_matrix->second});
      continue;
    }
    if (!from && !to) continue;
    std::vector<Cost>& costs = problem.strategy_tables[problem.nodes[from ? *from : *to].strategies].costs;
    for (std::size_t s = 0; s < costs.size(); ++s) {
      add_to(costs[s].communication,
             from ? matrix.at(s, known.strategy[edge.to].value()) : matrix.at(known.strategy[edge.from].value(), s));
    }
  }
  problem.memory_limits = limits_beside(whole, known, number);
  return result;
}

}  // namespace shardplan
