// Copies as nodes: a node can only be compared with another one by an edge, and memory is a sum over nodes. So every
// comparison of two layouts is a node that names their common layout or is a "copy"; further nodes are copies if one of
// those beside them is; and the node that takes the memory takes none unless it is a copy. Of the exact alternatives,
// redistributions with live ranges of their own would double the nodes; counting a view and what it shows twice, as
// memory of both, refuses plans that fit (6 % of a transformer's activations with fused attention).

#include "planner/problem/problem_copies.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "operators/operator_type.h"
#include "planner/problem/copy_nodes.h"

namespace shardplan {
namespace {

bool is_view(const OperatorGraph& graph, OperatorId op) { return graph.operation(op).type->work == WorkKind::kView; }

/// True for a view, and for an update that writes in place a value which more than one other operator or a view reads:
/// its result is in the first operand's memory, unless that is a copy.
bool shows_operand(const OperatorGraph& graph, const TensorVersions& versions, OperatorId op) {
  if (is_view(graph, op)) return true;
  if (graph.operation(op).type->in_place == InPlace::kNo) return false;
  const TensorVersion& produced = versions.all[*versions.first[graph.operators()[op].results.front()]];
  if (produced.begin < produced.end) return false;  // the old value is still read
  const auto is_kept_apart = [&](VersionId next) { return versions.all[next].kind != TensorVersion::Kind::kUpdated; };
  const auto is_viewed = [&](const Reader& reader) { return is_view(graph, reader.op); };
  return std::any_of(produced.next.begin(), produced.next.end(), is_kept_apart) ||
         std::any_of(produced.readers.begin(), produced.readers.end(), is_viewed);
}

/// The end of a version, including the last reader that it is handed over to.
std::uint32_t held_until(const TensorVersion& version) {
  return version.is_handed_over ? static_cast<std::uint32_t>(version.readers.back().op.value()) + 1 : version.end;
}

class Copies {
 public:
  Copies(const CopiesInput& input, const LayoutTables& layouts, ModelProblem& model)
      : input_(input),
        graph_(input.graph),
        versions_(input.versions),
        model_(model),
        nodes_(layouts, model.problem),
        shown_(versions_.all.size()),
        memory_(versions_.all.size()) {}

  void add_of_view(OperatorId id) {
    if (!shows_operand(graph_, versions_, id)) return;
    const OptionalIndex<VersionId> viewed = versions_.read[id][0];
    if (!viewed) return;
    const CandidateTable& table = *input_.tables[id];
    const NodeId node = model_.operator_nodes[id];
    const std::vector<TensorId>& results = graph_.operators()[id].results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const VersionId produced = *versions_.first[results[i]];
      if (input_.fusion.in_registers[results[i]]) continue;
      if (input_.shown_until[results[i]] <= versions_.all[produced].begin) continue;
      const std::optional<CopyId> is_copied =
          add({id, node, node_of(*viewed), {}, {}, {}},
              nodes_.between(table.operands[0], input_.version_lists[*viewed], table.result_usage[i], false),
              {std::nullopt, {id, 0}});
      if (is_copied) {
        for (Holder& holder : holders(*viewed)) {
          holder.unless.push_back(*is_copied);
          shown_[produced].push_back(std::move(holder));
        }
      }
      add_memory(produced, id, node, table.result_usage[i]);
      for (const VersionId next : versions_.all[produced].next) add_of_version(next, id, produced, is_copied);
    }
  }

  /// Views' results that the operator is the last to read, while what they are views of is held.
  void add_of_views_read(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const auto time = static_cast<std::uint32_t>(id.value());
    for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
      const OptionalIndex<VersionId> version = versions_.read[id][operand];
      const TensorId tensor = op.operands[operand];
      if (!version || !versions_.all[*version].is_handed_over_to({id, operand})) continue;
      if (input_.fusion.in_registers[tensor] || input_.shown_until[tensor] <= time) continue;
      const Shown shown = shown_at(*version, time);
      if (shown.is_always) continue;
      if (shown.holder != nullptr) {
        add_operand(id, operand, *version, shown.holder->unless, false);
      } else {
        const UsageTableId usage = input_.tables[id]->operand_usage[operand];
        model_.problem.nodes[model_.operator_nodes[id]].memory.push_back({usage, time, time + 1});
      }
    }
  }

  /// Operands that may need a copy while the operator runs, unless it is counted elsewhere: a view holds none, the
  /// copy of the last reader is counted with it, and a tensor that is read twice may have one copy for both.
  void add_of_operands(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    if (is_view(graph_, id)) return;
    for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
      const std::optional<VersionId>& version = versions_.read[id][operand];
      if (!version || versions_.all[*version].is_handed_over_to({id, operand})) continue;
      if (input_.fusion.in_registers[op.operands[operand]]) continue;
      if (std::count(op.operands.begin(), op.operands.end(), op.operands[operand]) > 1) continue;
      add_of_operand(id, operand, *version);
    }
  }

  std::vector<HeldOperand> held() && { return std::move(held_); }

 private:
  /// Holds a value in these times, in one place, unless one of these is a copy.
  struct Holder {
    std::uint32_t begin = 0, end = 0;
    std::vector<CopyId> unless;
  };
  /// What holds it at a time. If several might, it is taken to need no memory.
  struct Shown {
    bool is_always = false;
    const Holder* holder = nullptr;
  };

  NodeId node_of(VersionId id) const {
    const TensorVersion& version = versions_.all[id];
    if (version.kind == TensorVersion::Kind::kProduced) {
      return model_.operator_nodes[*graph_.tensor(version.tensor).producer];
    }
    return *model_.version_nodes[id];
  }

  /// All that holds the value of this version: itself, later versions, and what it is a view of.
  std::vector<Holder> holders(VersionId id) {
    const TensorVersion& version = versions_.all[id];
    std::vector<Holder> result = {{version.begin, held_until(version), {}}};
    add_later(id, result);
    if (version.stored && *version.stored != id) {
      if (const auto differs = differs_from(id, *version.stored)) {
        result.push_back({held_until(version), versions_.num_times, {*differs}});
      }
    }
    result.insert(result.end(), shown_[id].begin(), shown_[id].end());
    return result;
  }

  void add_later(VersionId id, std::vector<Holder>& result) {
    const Holder before = result.back();
    for (const VersionId next : versions_.all[id].next) {
      if (!model_.version_nodes[next]) continue;
      const std::optional<CopyId> differs = differs_from(next, id);
      if (!differs) continue;
      result.push_back({before.end, std::max(before.end, held_until(versions_.all[next])), before.unless});
      result.back().unless.push_back(*differs);
      add_later(next, result);
    }
  }

  /// Whether a version has another layout than one before it; nothing if it always has.
  std::optional<CopyId> differs_from(VersionId id, VersionId before) {
    const auto [known, is_new] = differences_.try_emplace({id, before});
    if (!is_new) return known->second;
    const NodeId node = *model_.version_nodes[id];
    const auto [nothing, is_first] = nothing_.try_emplace(model_.problem.num_strategies(node));
    if (is_first) {
      nothing->second = model_.problem.usage_tables.push_back({std::vector<Bytes>(nothing->first, 0)});
    }
    const TensorId tensor = versions_.all[id].tensor;
    const OperatorId op = graph_.tensor(tensor).producer ? OperatorId(*graph_.tensor(tensor).producer)
                                                         : graph_.tensor(tensor).readers.front().op;
    return known->second =
               add({op, node, node_of(before), {}, {}, {}},
                   nodes_.between(input_.version_lists[id], input_.version_lists[before], nothing->second, false),
                   {id, {}});
  }

  /// Of a version of a view's result that is made from the produced one, and of those made from it.
  void add_of_version(VersionId id, OperatorId view, VersionId produced, std::optional<CopyId> is_copied) {
    for (const VersionId next : versions_.all[id].next) add_of_version(next, view, produced, is_copied);
    const std::optional<UsageTableId>& usage = input_.version_usage[id];
    if (!usage || input_.shown_until[versions_.all[id].tensor] <= versions_.all[id].begin) return;
    const NodeId node = *model_.version_nodes[id];
    if (is_copied) {
      const std::optional<CopyId> differs =
          add({view, node, model_.operator_nodes[view], {*is_copied}, {}, {}},
              nodes_.between(input_.version_lists[id], input_.version_lists[produced], *usage, false), {id, {}});
      for (Holder holder : shown_[produced]) {
        if (!differs) break;
        holder.unless.back() = *differs;  // which includes the one that it replaces
        shown_[id].push_back(std::move(holder));
      }
    }
    add_memory(id, view, node, *usage);
  }

  Shown shown_at(VersionId id, std::uint32_t time) const {
    Shown shown;
    for (const Holder& holder : shown_[id]) {
      if (time < holder.begin || holder.end <= time) continue;
      if (holder.unless.size() == 1) return {false, &holder};
      shown = {shown.holder != nullptr, &holder};
    }
    return shown;
  }

  /// The memory that a version of a view's result takes as long as what it is a view of may be held.
  void add_memory(VersionId id, OperatorId view, NodeId node, UsageTableId usage) {
    const TensorVersion& version = versions_.all[id];
    const std::uint32_t until = std::clamp(input_.shown_until[version.tensor], version.begin, version.end);
    std::set<std::uint32_t> times{version.begin, until};
    for (const Holder& holder : shown_[id]) {
      for (const std::uint32_t time : {holder.begin, holder.end}) {
        if (version.begin < time && time < until) times.insert(time);
      }
    }
    for (auto time = times.begin(); std::next(time) != times.end(); ++time) {
      const Shown shown = shown_at(id, *time);
      const std::uint32_t end = *std::next(time);
      if (shown.is_always) continue;
      if (!shown.holder) {
        model_.problem.nodes[node].memory.push_back({usage, *time, end});
      } else if (shown.holder->unless.size() == 1) {
        take(shown.holder->unless.front(), *time, end);
        memory_[id].push_back(shown.holder->unless.front());
      } else {
        const std::optional<CopyId> copy =
            add({view, node, std::nullopt, shown.holder->unless, {}, {}}, nodes_.of_taker_alone(usage), {id, {}});
        take(*copy, *time, end);
        memory_[id].push_back(*copy);
      }
    }
  }

  void add_of_operand(OperatorId id, std::size_t operand, VersionId version) {
    const auto time = static_cast<std::uint32_t>(id.value());
    const TensorVersion& read = versions_.all[version];
    // The version's own memory is free once its last reader has its copy, as with `TensorVersion::is_handed_over`. A
    // value written in place has none: it is in that of the stored tensor.
    const bool is_needed =
        std::any_of(read.next.begin(), read.next.end(), [&](VersionId next) { return !versions_.all[next].stored; });
    const bool frees = !read.is_handed_over && !is_needed && read.begin < read.end && read.end <= time + 1;
    if (frees && model_.version_nodes[version]) {
      end_memory(*model_.version_nodes[version], time);
      for (const CopyId copy : memory_[version]) end_memory(model_.copies[copy].node, time);
    }
    add_operand(id, operand, version, {}, frees);
  }

  /// The copy of an operand that an operator may hold while it runs.
  void add_operand(OperatorId id, std::size_t operand, VersionId version, std::vector<CopyId> beside, bool frees) {
    const CandidateTable& table = *input_.tables[id];
    const auto time = static_cast<std::uint32_t>(id.value());
    const NodeId node = model_.operator_nodes[id];
    const CopyTables& tables =
        nodes_.between(table.operands[operand], input_.version_lists[version], table.operand_usage[operand], frees);
    const std::optional<CopyId> copy =
        add({id, node, node_of(version), std::move(beside), {}, {}}, tables, {std::nullopt, {id, operand}});
    if (copy) {
      take(*copy, time, time + 1);
    } else {
      model_.problem.nodes[node].memory.push_back({tables.usage, time, time + 1});
    }
    held_.push_back({{id, operand}, copy ? model_.copies[*copy].node : node, tables.usage});
  }

  void end_memory(NodeId node, std::uint32_t time) {
    for (MemoryUse& use : model_.problem.nodes[node].memory) use.end = std::max(use.begin, std::min(use.end, time));
  }

  /// The memory of a copy.
  void take(CopyId id, std::uint32_t begin, std::uint32_t end) {
    const ModelProblem::Copy& copy = model_.copies[id];
    model_.problem.nodes[copy.node].memory.push_back({usages_[id], begin, end});
  }

  /// Adds a copy's node, without memory, and its edges; nothing if there is a copy always.
  std::optional<CopyId> add(ModelProblem::Copy copy, const CopyTables& tables, const ModelProblem::Communicated& what) {
    if (!tables.positions) return std::nullopt;
    StrategyProblem& problem = model_.problem;
    copy.node = problem.nodes.push_back({tables.costs, {}});
    copy.positions = tables.positions;
    problem.edges.push_back({copy.taker, copy.node, tables.of_taker});
    if (copy.source) problem.edges.push_back({*copy.source, copy.node, tables.of_source});
    for (const CopyId id : copy.beside) {
      const ModelProblem::Copy& other = model_.copies[id];
      problem.edges.push_back({other.node, copy.node, nodes_.copied_beside(*other.positions, *copy.positions)});
    }
    model_.communicated.resize(problem.edges.size(), what);
    usages_.push_back(tables.usage);
    return model_.copies.push_back(std::move(copy));
  }

  const CopiesInput& input_;
  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  ModelProblem& model_;
  CopyNodes nodes_;
  IdVector<VersionId, std::vector<Holder>> shown_;   // of versions of views' results; the last of `unless` is its own
  IdVector<VersionId, std::vector<CopyId>> memory_;  // of versions of views' results: the nodes that take it
  IdVector<CopyId, UsageTableId> usages_;
  std::map<std::pair<VersionId, VersionId>, std::optional<CopyId>> differences_;
  std::map<std::size_t, UsageTableId> nothing_;  // by number of strategies
  std::vector<HeldOperand> held_;
};

}  // namespace

IdVector<TensorId, std::uint32_t> shown_until(const OperatorGraph& graph, const TensorVersions& versions) {
  IdVector<TensorId, std::uint32_t> held(graph.tensors().size(), 0);  // by a tensor's last version, or what it views
  IdVector<TensorId, std::uint32_t> shown(graph.tensors().size(), 0);
  for (const TensorVersion& version : versions.all) {
    held[version.tensor] = std::max(held[version.tensor], held_until(version));
  }
  for (const OperatorId id : graph.operators().ids()) {
    if (!shows_operand(graph, versions, id)) continue;
    const std::uint32_t until = held[graph.operators()[id].operands.front()];
    for (const TensorId result : graph.operators()[id].results) {
      shown[result] = until;
      held[result] = std::max(held[result], until);
    }
  }
  return shown;
}

std::vector<HeldOperand> add_copies(const CopiesInput& input, const LayoutTables& layouts, bool of_operands,
                                    ModelProblem& model) {
  Copies copies(input, layouts, model);
  for (const OperatorId op : input.graph.operators().ids()) copies.add_of_view(op);
  for (const OperatorId op : input.graph.operators().ids()) copies.add_of_views_read(op);
  if (of_operands) {
    for (const OperatorId op : input.graph.operators().ids()) copies.add_of_operands(op);
  }
  return std::move(copies).held();
}

}  // namespace shardplan
