#include "planner/problem/uniform_layers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "solver/tied_problem.h"

namespace shardplan {
namespace {

/// Numbers lists of strategies; equal lists have one number.
class StrategyLists {
 public:
  std::size_t number(OperationId operation, const std::shared_ptr<const std::vector<Strategy>>& list) {
    const auto [found, is_new] = known_.try_emplace(list.get(), lists_.size());
    if (!is_new) return found->second;
    std::vector<std::size_t>& alike = by_operation_[operation];
    for (const std::size_t other : alike) {
      if (*lists_[other] == *list) return found->second = other;
    }
    alike.push_back(lists_.size());
    lists_.push_back(list.get());
    return found->second;
  }

 private:
  std::unordered_map<const std::vector<Strategy>*, std::size_t> known_;  // never iterated over
  std::map<OperationId, std::vector<std::size_t>> by_operation_;
  std::vector<const std::vector<Strategy>*> lists_;
};

class Sets {
 public:
  explicit Sets(std::size_t num_nodes) : of_(num_nodes) {}

  template <class Key>
  void add(NodeId node, const Key& key, std::map<Key, NodeId>& known) {
    of_[node] = known.try_emplace(key, NodeId(count_)).first->second;
    if (of_[node]->value() == count_) ++count_;
  }
  NodeId operator[](NodeId node) const { return *of_[node]; }
  IdVector<NodeId, NodeId> all() const {
    IdVector<NodeId, NodeId> result;
    for (const std::optional<NodeId>& set : of_) result.push_back(*set);
    return result;
  }

 private:
  IdVector<NodeId, std::optional<NodeId>> of_;
  std::size_t count_ = 0;
};

}  // namespace

IdVector<NodeId, NodeId> uniform_ties(const ModelProblem& free, const OperatorGraph& graph,
                                      const TensorVersions& versions, const RepeatClasses& classes) {
  Sets sets(free.problem.nodes.size());
  StrategyLists lists;
  std::map<std::pair<RepeatClassId, std::size_t>, NodeId> of_operators;
  for (const OperatorId op : graph.operators().ids()) {
    if (graph.operators()[op].is_copy) continue;  // its original's node
    const std::size_t list = lists.number(graph.operators()[op].operation, free.strategies[op]);
    sets.add(free.operator_nodes[op], {classes.operators[op], list}, of_operators);
  }
  // The versions of corresponding tensors in order: the second of one copy corresponds to the second of another, if
  // it has the same role and candidates.
  using VersionKey = std::tuple<RepeatClassId, std::size_t, TensorVersion::Kind, TensorVersion::Keeping, std::size_t>;
  std::map<VersionKey, NodeId> of_versions;
  std::unordered_map<const std::vector<ModelProblem::VersionChoice>*, std::size_t> choices;  // never iterated over
  IdVector<TensorId, std::uint32_t> next(graph.tensors().size(), 0);
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    const std::size_t rank = next[version.tensor]++;
    if (!free.version_nodes[id]) continue;
    const std::size_t list = choices.try_emplace(free.choices[id].get(), choices.size()).first->second;
    sets.add(*free.version_nodes[id], {classes.tensors[version.tensor], rank, version.kind, version.keeping, list},
             of_versions);
  }
  using CopyKey = std::tuple<RepeatClassId, NodeId, std::optional<NodeId>, std::vector<NodeId>, const void*>;
  std::map<CopyKey, NodeId> of_copies;  // never iterated over
  for (const ModelProblem::Copy& copy : free.copies) {
    const auto source = copy.source ? std::optional(sets[*copy.source]) : std::nullopt;
    std::vector<NodeId> beside;
    for (const CopyId other : copy.beside) beside.push_back(sets[free.copies[other].node]);
    sets.add(copy.node, {classes.operators[copy.op], sets[copy.taker], source, beside, copy.positions.get()},
             of_copies);
  }
  return sets.all();
}

ModelProblem with_uniform_layers(const ModelProblem& free, const OperatorGraph& graph, const TensorVersions& versions,
                                 const RepeatClasses& classes) {
  TiedProblem tied = tied_problem(free.problem, uniform_ties(free, graph, versions, classes));
  ModelProblem result;
  result.problem = std::move(tied.problem);
  result.operator_nodes.reserve(free.operator_nodes.size());
  for (const NodeId node : free.operator_nodes) result.operator_nodes.push_back(tied.node[node]);
  result.version_nodes.reserve(free.version_nodes.size());
  for (const std::optional<NodeId>& node : free.version_nodes) {
    result.version_nodes.push_back(node ? std::optional(tied.node[*node]) : std::nullopt);
  }
  result.copies = free.copies;
  for (ModelProblem::Copy& copy : result.copies) {
    copy.taker = tied.node[copy.taker];
    if (copy.source) copy.source = tied.node[*copy.source];
    copy.node = tied.node[copy.node];
  }
  result.strategies = free.strategies;
  result.choices = free.choices;
  result.candidates_complete = free.candidates_complete;
  result.times = std::move(tied.between);
  if (!free.times.empty()) {
    const ProblemTimes between = std::exchange(result.times, {});
    for (const auto& [time, same] : free.times) result.times.push_back(between[time]);
  }
  result.operator_tables = free.operator_tables;
  return result;
}

ModelProblem searched_problem(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                              RedistributionPlanner& redistributions, const Restrictions& restrictions) {
  ModelProblem free = build_problem(graph, versions, costs, redistributions, restrictions);
  if (!restrictions.uniform) return free;
  return with_uniform_layers(free, graph, versions, *restrictions.uniform);
}

}  // namespace shardplan
