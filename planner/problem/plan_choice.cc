#include "planner/problem/plan_choice.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "planner/problem/copy_nodes.h"

namespace shardplan {

IdVector<VersionId, TensorLayout> version_layouts(const OperatorGraph& graph, const TensorVersions& versions,
                                                  const ModelProblem& problem, const Choice& choice,
                                                  const DeviceMesh& mesh) {
  IdVector<VersionId, TensorLayout> layouts(versions.all.size());
  std::map<std::tuple<OperationId, const Strategy*, std::size_t>, TensorLayout> results;
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    if (version.kind == TensorVersion::Kind::kProduced) {
      const GraphTensor& tensor = graph.tensor(version.tensor);
      const OperationId operation = graph.operators()[*tensor.producer].operation;
      const Strategy& strategy = problem.strategy(*tensor.producer, choice);
      const auto [found, is_new] = results.try_emplace({operation, &strategy, tensor.result});
      if (is_new) found->second = result_layout(graph.operations()[operation], strategy, mesh, tensor.result);
      layouts[id] = found->second;
    } else if (version.kind == TensorVersion::Kind::kUpdated) {
      layouts[id] = layouts[*version.stored];
    } else {
      layouts[id] = problem.version_choice(id, choice).layout;
    }
  }
  return layouts;
}

Decisions decisions_of(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
                       const Choice& choice, const DeviceMesh& mesh) {
  Decisions decisions;
  decisions.strategies.reserve(graph.operators().size());
  for (const OperatorId op : graph.operators().ids()) decisions.strategies.push_back(problem.strategy(op, choice));
  decisions.versions = version_layouts(graph, versions, problem, choice, mesh);
  return decisions;
}

std::optional<Choice> find_choice(const TensorVersions& versions, const ModelProblem& problem,
                                  const IdVector<OperatorId, Strategy>& strategies,
                                  const IdVector<VersionId, TensorLayout>& layouts) {
  IdVector<NodeId, std::optional<StrategyId>> decided(problem.problem.nodes.size());
  const auto decide = [&](NodeId node, std::size_t position) {
    if (decided[node] && decided[node]->value() != position) return false;  // another copy has another strategy
    decided[node] = StrategyId(position);
    return true;
  };
  // Equal operators follow each other with equal lists: the result for one is tried first for the next.
  std::unordered_map<const std::vector<Strategy>*, std::size_t> last_found;
  for (const OperatorId op : strategies.ids()) {
    const std::vector<Strategy>& candidates = *problem.strategies[op];
    std::size_t& found = last_found.try_emplace(&candidates, 0).first->second;
    if (!sharded_alike(candidates[found], strategies[op])) {
      found = 0;
      while (found < candidates.size() && !sharded_alike(candidates[found], strategies[op])) ++found;
      if (found == candidates.size()) return std::nullopt;
    }
    if (!decide(problem.operator_nodes[op], found)) return std::nullopt;
  }
  for (const VersionId id : layouts.ids()) {
    if (!problem.version_nodes[id]) continue;
    const std::optional<VersionId>& stored = versions.all[id].stored;
    const bool may_share = stored && layouts[*stored] == layouts[id];
    const std::vector<ModelProblem::VersionChoice>& candidates = *problem.choices[id];
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!(candidates[i].layout == layouts[id]) || (candidates[i].shares_stored && !may_share)) continue;
      if (!found || candidates[i].shares_stored) found = i;
    }
    if (!found || !decide(*problem.version_nodes[id], *found)) return std::nullopt;
  }
  for (const ModelProblem::Copy& copy : problem.copies) {
    const bool is_beside_copy = std::any_of(copy.beside.begin(), copy.beside.end(), [&](CopyId id) {
      const ModelProblem::Copy& other = problem.copies[id];
      return other.positions->is_copy(decided[other.node]->value());
    });
    const auto of_source = copy.source ? std::optional<std::size_t>(decided[*copy.source]->value()) : std::nullopt;
    if (!decide(copy.node, copy.positions->position(decided[copy.taker]->value(), of_source, is_beside_copy))) {
      return std::nullopt;
    }
  }
  Choice choice;
  for (const std::optional<StrategyId>& strategy : decided) choice.strategy.push_back(strategy.value_or(StrategyId(0)));
  return choice;
}

}  // namespace shardplan
