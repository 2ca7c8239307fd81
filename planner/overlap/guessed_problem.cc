#include "planner/overlap/guessed_problem.h"

#include <map>
#include <tuple>
#include <utility>

namespace shardplan {
namespace {

std::int64_t counted_percent(const ModelProblem::Communicated& of, const OperatorGraph& graph,
                             const TensorVersions& versions, const Guess& guess) {
  const TensorVersion* version = of.version ? &versions.all[*of.version] : nullptr;
  if (version != nullptr && version->kind == TensorVersion::Kind::kUpdated) return guess.new_weights;
  const GraphTensor& tensor =
      graph.tensor(version != nullptr ? version->tensor : graph.operators()[of.reader.op].operands[of.reader.operand]);
  const bool is_stored = tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState;
  return is_stored || tensor.gradient_of ? guess.weights : guess.activations;
}

std::int64_t guessed(std::int64_t cost, std::int64_t percent) {
  return cost < kForbidden ? percent_of(cost, percent) : cost;
}

}  // namespace

StrategyProblem without_matrices(const StrategyProblem& problem) {
  return {problem.name,  problem.strategy_tables, problem.usage_tables, {},
          problem.nodes, problem.edges,           problem.memory_limits};
}

StrategyProblem guessed_problem(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                                const IdVector<EdgeId, MatrixId>* without_start_ups, const Guess& guess) {
  const IdVector<MatrixId, CostMatrix>& known = problem.problem.matrices;
  StrategyProblem result = without_matrices(problem.problem);
  std::map<std::tuple<MatrixId, MatrixId, std::int64_t>, MatrixId> scaled;
  for (const EdgeId id : result.edges.ids()) {
    const std::int64_t percent = counted_percent(problem.communicated[id], graph, versions, guess);
    MatrixId& matrix = result.edges[id].matrix;
    const MatrixId without = guess.start_ups != 100 && without_start_ups != nullptr ? (*without_start_ups)[id] : matrix;
    const auto [found, is_new] = scaled.try_emplace({matrix, without, percent});
    if (is_new && without == matrix && percent == 100) {
      found->second = result.matrices.push_back(known[matrix]);
    } else if (is_new) {
      std::vector<std::int64_t> costs = known[matrix].costs;
      for (std::size_t i = 0; i < costs.size(); ++i) {
        if (without != matrix) costs[i] = with_start_ups(costs[i], known[without].costs[i], guess.start_ups);
        if (percent != 100) costs[i] = guessed(costs[i], percent);
      }
      found->second = result.matrices.push_back({known[matrix].rows, known[matrix].columns, std::move(costs)});
    }
    matrix = found->second;
  }
  return result;
}

Picoseconds guessed_step(const ModelProblem& problem, const OperatorGraph& graph, const TensorVersions& versions,
                         const IdVector<EdgeId, MatrixId>* without_start_ups, const Guess& guess,
                         const Choice& choice) {
  const StrategyProblem& costs = problem.problem;
  Picoseconds sum = 0;
  for (const NodeId node : costs.nodes.ids()) {
    const Cost& cost = costs.strategy_tables[costs.nodes[node].strategies].costs[choice.strategy[node].value()];
    sum += cost.computation + cost.communication;
  }
  for (const EdgeId id : costs.edges.ids()) {
    const ProblemEdge& edge = costs.edges[id];
    const auto time = [&](MatrixId matrix) {
      return costs.matrices[matrix].at(choice.strategy[edge.from].value(), choice.strategy[edge.to].value());
    };
    std::int64_t cost = time(edge.matrix);
    if (guess.start_ups != 100 && without_start_ups != nullptr) {
      cost = with_start_ups(cost, time((*without_start_ups)[id]), guess.start_ups);
    }
    sum += guessed(cost, counted_percent(problem.communicated[id], graph, versions, guess));
  }
  return sum;
}

}  // namespace shardplan
