#include "planner/overlap/blended_problem.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "planner/overlap/guessed_problem.h"

namespace shardplan {
namespace {

std::int64_t share(std::int64_t cost, std::int64_t percent) {
  return cost < kForbidden ? percent_of(cost, percent) : kForbidden;
}

}  // namespace

StrategyProblem blended(StrategyProblem a, const StrategyProblem& b, std::int64_t percent) {
  SHARDPLAN_CHECK(a.nodes.size() == b.nodes.size());
  const std::int64_t rest = 100 - percent;
  IdVector<StrategyTableId, StrategyTable> tables;
  std::map<std::pair<StrategyTableId, StrategyTableId>, StrategyTableId> known;
  for (const NodeId node : a.nodes.ids()) {
    const std::pair of{a.nodes[node].strategies, b.nodes[node].strategies};
    const auto [found, is_new] = known.try_emplace(of);
    if (is_new) {
      StrategyTable table = a.strategy_tables[of.first];
      for (std::size_t i = 0; i < table.costs.size(); ++i) {
        const Cost &first = table.costs[i], &second = b.strategy_tables[of.second].costs[i];
        table.costs[i] = {
            share(first.computation, rest) + share(second.computation, percent),
            std::min(kForbidden, share(first.communication, rest) + share(second.communication, percent))};
      }
      found->second = tables.push_back(std::move(table));
    }
    a.nodes[node].strategies = found->second;
  }
  a.strategy_tables = std::move(tables);
  const auto shrink = [](CostMatrix& matrix, std::int64_t part) {
    for (std::int64_t& cost : matrix.costs) cost = share(cost, part);
  };
  for (CostMatrix& matrix : a.matrices) shrink(matrix, rest);
  IdVector<MatrixId, MatrixId> of_b;
  for (const CostMatrix& matrix : b.matrices) {
    const MatrixId id = a.matrices.push_back(matrix);
    shrink(a.matrices[id], percent);
    of_b.push_back(id);
  }
  for (const ProblemEdge& edge : b.edges) a.edges.push_back({edge.from, edge.to, of_b[edge.matrix]});
  return a;
}

}  // namespace shardplan
