#include "planner/problem/plan_choice.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/shared_value.h"
#include "planner/problem/copy_nodes.h"

namespace shardplan {
namespace {

/// The layout in which everything reads the version; nothing if there are several.
std::optional<TensorLayout> only_layout(const OperatorGraph& graph, const TensorVersion& version,
                                        const Decisions& decisions, const DeviceMesh& mesh) {
  std::optional<TensorLayout> only;
  const auto is_alike = [&](const TensorLayout& layout) {
    if (!only) only = layout;
    return *only == layout;
  };
  for (const VersionId next : version.next) {
    if (!is_alike(decisions.versions[next])) return std::nullopt;
  }
  for (const Reader& reader : version.readers) {
    const Strategy& strategy = decisions.strategies[reader.op];
    if (!is_alike(operand_layout(graph.operation(reader.op), strategy, mesh, reader.operand))) return std::nullopt;
  }
  return only;
}

/// Weights that nothing updates are stored as they are read: that takes less memory at no cost, so that a search which
/// does not minimise memory may keep them whole.
void store_as_read(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
                   const DeviceMesh& mesh, Decisions& decisions) {
  IdVector<VersionId, char> is_updated(versions.all.size(), 0);
  for (const TensorVersion& version : versions.all) {
    if (version.kind == TensorVersion::Kind::kUpdated) is_updated[*version.stored] = 1;
  }
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    const GraphTensor& tensor = graph.tensor(version.tensor);
    if (version.kind != TensorVersion::Kind::kStored || tensor.kind != TensorKind::kParameter || is_updated[id]) {
      continue;
    }
    const std::optional<TensorLayout> read = only_layout(graph, version, decisions, mesh);
    if (!read || local_bytes(tensor.type, *read) >= local_bytes(tensor.type, decisions.versions[id])) continue;
    const auto& candidates = *problem.choices[id];
    const bool may_be_stored_so = std::ranges::any_of(
        candidates, [&](const ModelProblem::VersionChoice& choice) { return choice.layout == *read; });
    if (may_be_stored_so) decisions.versions[id] = *read;
  }
}

}  // namespace

VersionLayouts version_layouts(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
                               const Choice& choice, const DeviceMesh& mesh) {
  VersionLayouts layouts(versions.all.size());
  std::map<std::tuple<OperationId, const Strategy*, std::size_t>, SharedValue<TensorLayout>> results;
  std::unordered_map<const TensorLayout*, SharedValue<TensorLayout>> chosen;  // never iterated over
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
      const TensorLayout& layout = problem.version_choice(id, choice).layout;
      const auto [found, is_new] = chosen.try_emplace(&layout);
      if (is_new) found->second = layout;
      layouts[id] = found->second;
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
  store_as_read(graph, versions, problem, mesh, decisions);
  return decisions;
}

std::optional<Choice> find_choice(const TensorVersions& versions, const ModelProblem& problem,
                                  const IdVector<OperatorId, Strategy>& strategies, const VersionLayouts& layouts) {
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
    const TensorLayout& layout = layouts[id];
    const bool may_share = stored && layouts[*stored] == layouts[id];
    const std::vector<ModelProblem::VersionChoice>& candidates = *problem.choices[id];
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!(candidates[i].layout == layout) || (candidates[i].shares_stored && !may_share)) continue;
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
