#include "solver/strategy_problem.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/integer.h"

namespace shardplan {
namespace {

std::int64_t saturate(Int128 value) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
  return value > kLargest ? kLargest : value < kSmallest ? kSmallest : static_cast<std::int64_t>(value);
}

}  // namespace

std::int64_t Evaluation::value(const Objective& objective) const {
  return saturate(static_cast<Int128>(objective.computation_weight) * cost.computation +
                  static_cast<Int128>(objective.communication_weight) * cost.communication);
}

Evaluation evaluate(const StrategyProblem& problem, const Choice& choice) {
  SHARDPLAN_CHECK(choice.strategy.size() == problem.nodes.size());
  Evaluation result;
  Int128 computation = 0;
  Int128 communication = 0;
  std::vector<Int128> in_use(problem.memory_limits.size() + 1, 0);  // first differences, then sums
  for (const NodeId node : problem.nodes.ids()) {
    const std::size_t strategy = choice.strategy[node].value();
    SHARDPLAN_CHECK(strategy < problem.num_strategies(node));
    const Cost& cost = problem.strategy_tables[problem.nodes[node].strategies].costs[strategy];
    if (cost.computation >= kForbidden || cost.communication >= kForbidden) {
      ++result.forbidden_count;
    } else {
      computation += cost.computation;
      communication += cost.communication;
    }
    for (const MemoryUse& use : problem.nodes[node].memory) {
      if (use.begin >= use.end) continue;
      const Bytes bytes = problem.usage_tables[use.usage].bytes[strategy];
      in_use[use.begin] += bytes;
      in_use[use.end] -= bytes;
    }
  }
  for (const ProblemEdge& edge : problem.edges) {
    const CostMatrix& matrix = problem.matrices[edge.matrix];
    const std::int64_t cost = matrix.at(choice.strategy[edge.from].value(), choice.strategy[edge.to].value());
    if (cost >= kForbidden) {
      ++result.forbidden_count;
    } else {
      communication += cost;
    }
  }
  Int128 bytes = 0;
  Int128 peak = 0;
  Int128 excess = problem.memory_limits.empty() ? 0 : std::numeric_limits<std::int64_t>::min();
  for (std::size_t time = 0; time < problem.memory_limits.size(); ++time) {
    bytes += in_use[time];
    if (bytes > peak) {
      peak = bytes;
      result.peak_time = time;
    }
    excess = std::max(excess, bytes - problem.memory_limits[time]);
  }
  result.cost = {saturate(computation), saturate(communication)};
  result.peak_bytes = saturate(peak);
  result.worst_excess = saturate(excess);
  result.feasible = result.forbidden_count == 0 && result.worst_excess <= 0;
  return result;
}

void check_problem(const StrategyProblem& problem) {
  const auto fail = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    throw InputError(SourcePlace{}, "problem '{}': {}", problem.name, fmt::format(format, std::forward<Args>(args)...));
  };
  for (const StrategyTableId id : problem.strategy_tables.ids()) {
    if (problem.strategy_tables[id].costs.empty()) fail("strategy table {} is empty", id.value());
    for (const Cost& cost : problem.strategy_tables[id].costs) {
      if (cost.computation < 0 || cost.communication < 0) fail("strategy table {} has a negative cost", id.value());
    }
  }
  for (const UsageTableId id : problem.usage_tables.ids()) {
    for (const Bytes bytes : problem.usage_tables[id].bytes) {
      if (bytes < 0) fail("usage table {} has a negative usage", id.value());
    }
  }
  for (const MatrixId id : problem.matrices.ids()) {
    const CostMatrix& matrix = problem.matrices[id];
    if (matrix.costs.size() != std::size_t{matrix.rows} * matrix.columns) {
      fail("matrix {} has {} entries; expected {} x {}", id.value(), matrix.costs.size(), matrix.rows, matrix.columns);
    }
    for (const std::int64_t cost : matrix.costs) {
      if (cost < 0) fail("matrix {} has a negative cost", id.value());
    }
  }
  for (const NodeId id : problem.nodes.ids()) {
    const ProblemNode& node = problem.nodes[id];
    if (node.strategies.value() >= problem.strategy_tables.size()) {
      fail("node {} names strategy table {}; there are {}", id.value(), node.strategies.value(),
           problem.strategy_tables.size());
    }
    for (const MemoryUse& use : node.memory) {
      if (use.usage.value() >= problem.usage_tables.size()) {
        fail("node {} names usage table {}; there are {}", id.value(), use.usage.value(), problem.usage_tables.size());
      }
      if (problem.usage_tables[use.usage].bytes.size() != problem.num_strategies(id)) {
        fail("node {} has {} strategies but {} usages", id.value(), problem.num_strategies(id),
             problem.usage_tables[use.usage].bytes.size());
      }
      if (use.begin < use.end && use.end > problem.memory_limits.size()) {
        fail("node {} lives until {}; there are {} times", id.value(), use.end, problem.memory_limits.size());
      }
    }
  }
  for (const EdgeId id : problem.edges.ids()) {
    const ProblemEdge& edge = problem.edges[id];
    for (const NodeId end : {edge.from, edge.to}) {
      if (end.value() >= problem.nodes.size()) {
        fail("edge {} names node {}; there are {}", id.value(), end.value(), problem.nodes.size());
      }
    }
    if (edge.matrix.value() >= problem.matrices.size()) {
      fail("edge {} names matrix {}; there are {}", id.value(), edge.matrix.value(), problem.matrices.size());
    }
    const CostMatrix& matrix = problem.matrices[edge.matrix];
    if (matrix.rows != problem.num_strategies(edge.from) || matrix.columns != problem.num_strategies(edge.to)) {
      fail("edge {} has a {} x {} matrix; its nodes have {} and {} strategies", id.value(), matrix.rows, matrix.columns,
           problem.num_strategies(edge.from), problem.num_strategies(edge.to));
    }
  }
}

}  // namespace shardplan
