// From a graph to a StrategyProblem.
//
// Every operator is a node whose strategies are its candidates. Every version of a tensor whose layout is a choice
// (graph/tensor_versions.h) is a node whose strategies are layouts. An edge between a version and whatever is made
// from it or reads it has the redistribution's cost for every pair of layouts.
//
// A copy that recomputation makes (graph/recompute.h) has no node of its own: its original's node decides it, with
// the cost and memory of both.
//
// What a step does with every micro-batch costs that many times as much; the counts are those of the graph's
// operators and of the versions, and scale each node's table and each edge's matrix.
//
// Layouts, lists of layouts, tables and matrices are interned, so 96 equal layers cost as much as one: the work is
// done per distinct operation and per distinct pair of lists, the rest is look-ups. Costs are computed last
// (problem_costs.cc), when all required tables and matrices are known.

#include "planner/problem/model_problem.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "operators/operator_type.h"
#include "planner/problem/candidate_table.h"
#include "planner/problem/layout_tables.h"
#include "planner/problem/problem_copies.h"
#include "planner/problem/problem_costs.h"
#include "planner/problem/running_memory.h"

namespace shardplan {
namespace {

class Build {
 public:
  Build(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
        RedistributionPlanner& redistributions, const Restrictions& restrictions)
      : graph_(graph),
        versions_(versions),
        costs_(costs),
        redistributions_(redistributions),
        restrictions_(restrictions),
        known_fusion_(restrictions.fusion ? restrictions.fusion
                                          : std::make_shared<const KernelFusion>(kernel_fusion(graph, costs.fusion()))),
        fusion_(*known_fusion_),
        tables_(result_.problem) {}

  ModelProblem run() {
    StrategyProblem& problem = result_.problem;
    problem.name = graph_.name();
    problem.memory_limits.assign(versions_.num_times, restrictions_.capacity);
    shared_operations_.resize(graph_.operations().size());
    tables_by_operation_.resize(graph_.operations().size());
    may_be_partial_.resize(graph_.tensors().size(), 0);
    shown_until_ = shown_until(graph_, versions_);
    for (const OperatorId op : graph_.operators().ids()) add_operator(op);
    version_lists_.resize(versions_.all.size());
    version_usage_.resize(versions_.all.size());
    result_.version_nodes.resize(versions_.all.size());
    result_.choices.resize(versions_.all.size());
    for (const VersionId version : versions_.all.ids()) add_version(version);
    for (const VersionId version : versions_.all.ids()) add_edges_to_version(version);
    for (const OperatorId op : graph_.operators().ids()) add_edges_to_operator(op);
    add_costs();
    const CopiesInput input{graph_, versions_, fusion_, operator_tables_, version_lists_, version_usage_, shown_until_};
    const std::vector<HeldOperand> held =
        add_copies(input, tables_, restrictions_.counts_copies || restrictions_.counts_redistributions, result_);
    if (restrictions_.counts_redistributions) add_running_memory(input, tables_, held, redistributions_, result_);
    return std::move(result_);
  }

 private:
  // ---- operators

  PartialGroups possible_groups(OperatorId id) const {
    const GraphOperator& op = graph_.operators()[id];
    const ShardingRule& rule = graph_.operation(id).rule;
    const auto any_partial = [&](const std::vector<std::uint32_t>& group) {
      return static_cast<char>(std::any_of(group.begin(), group.end(), [&](std::uint32_t operand) {
        return may_be_partial_[op.operands[operand]] != 0;
      }));
    };
    PartialGroups groups;
    for (const auto& group : rule.linear) groups.linear.push_back(any_partial(group));
    groups.monotone.assign(rule.monotone.size(), 0);
    return groups;
  }

  /// Creates a node; a copy shares its original's, which then has the cost and memory of both.
  void add_operator(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const CandidateTable& table = candidates(op.is_copy ? *op.forward : id, fusion_.traffic[id]);
    const NodeId node_id =
        op.is_copy ? result_.operator_nodes[*op.forward] : result_.problem.nodes.push_back({table.table, {}});
    ProblemNode& node = result_.problem.nodes[node_id];
    node_tables_.resize(result_.problem.nodes.size());
    node_tables_[node_id].emplace_back(table.table, graph_.runs(id));
    node.strategies = sum(node_tables_[node_id]);
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      if (fusion_.in_registers[op.results[i]]) continue;
      const TensorVersion& produced = versions_.all[*versions_.first[op.results[i]]];
      const std::uint32_t begin = std::max(produced.begin, std::min(shown_until_[op.results[i]], produced.end));
      node.memory.push_back({table.result_usage[i], begin, produced.end});
    }
    const auto time = static_cast<std::uint32_t>(id.value());
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const std::optional<VersionId>& version = versions_.read[id][i];
      if (!version || !versions_.all[*version].is_handed_over_to({id, i})) continue;
      if (fusion_.in_registers[op.operands[i]] || shown_until_[op.operands[i]] > time) continue;
      const TensorVersion& read = versions_.all[*version];
      node.memory.push_back({table.operand_usage[i], read.is_taken_early ? read.end : time, time + 1});
    }
    result_.operator_nodes.push_back(node_id);
    result_.operator_tables.push_back(table.table);
    result_.strategies.push_back(table.strategies);
    operator_tables_.push_back(&table);
    result_.candidates_complete = result_.candidates_complete && table.complete;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const std::vector<ListedLayout>& entries = tables_.entries(table.results[i]);
      may_be_partial_[op.results[i]] = std::any_of(entries.begin(), entries.end(), [&](const ListedLayout& entry) {
        return !tables_[entry.layout].partial.empty();
      });
    }
  }

  using TableRuns = std::vector<std::pair<StrategyTableId, std::int64_t>>;

  /// The table of an operator and its copies, with their numbers of runs.
  StrategyTableId sum(const TableRuns& parts) {
    if (parts.size() == 1 && parts.front().second == 1) return parts.front().first;
    const auto [found, is_new] = summed_tables_.try_emplace(parts);
    if (is_new) {
      const std::size_t size = result_.problem.strategy_tables[parts.front().first].costs.size();
      found->second = result_.problem.strategy_tables.push_back({std::vector<Cost>(size)});
    }
    return found->second;
  }

  const CandidateTable& candidates(OperatorId id, const SharedValue<KernelTraffic>& traffic) {
    const OperationId operation = graph_.operators()[id].operation;
    const std::vector<Strategy>& fixed = restrictions_.operators[id];
    const PartialGroups groups = fixed.empty() ? possible_groups(id) : PartialGroups{};
    for (const auto& table : tables_by_operation_[operation]) {
      if (table->groups == groups && table->fixed == fixed && table->traffic == traffic) return *table;
    }
    auto table = std::make_unique<CandidateTable>();
    table->first = id;
    table->operation = operation;
    table->traffic = traffic;
    table->groups = groups;
    table->fixed = fixed;
    Candidates found;
    if (fixed.empty()) {
      found = enumerate_strategies(graph_.operations()[operation], costs_.mesh(), restrictions_.pieces, groups,
                                   restrictions_.uneven);
      if (restrictions_.least_contraction_work) keep_least_work(graph_.operations()[operation], found.strategies);
    } else {
      found.strategies = fixed;
    }
    if (found.strategies.empty()) {
      throw InputError(graph_.operators()[id].place, "{}: no strategy is possible", graph_.operators()[id].name);
    }
    table->complete = found.complete;
    fill(*table, std::move(found.strategies));
    new_tables_.push_back(table.get());
    tables_by_operation_[operation].push_back(std::move(table));
    return *tables_by_operation_[operation].back();
  }

  void fill(CandidateTable& table, std::vector<Strategy> strategies) {
    const Operation& operation = graph_.operations()[table.operation];
    const DeviceMesh& mesh = costs_.mesh();
    std::vector<std::vector<ListedLayout>> operands(operation.operands.size()), results(operation.results.size());
    std::vector<std::vector<Bytes>> operand_bytes(operation.operands.size()), result_bytes(operation.results.size());
    for (const Strategy& strategy : strategies) {
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const TensorLayout layout = operand_layout(operation, strategy, mesh, i);
        operands[i].push_back({tables_.layout(layout), false});
        operand_bytes[i].push_back(local_bytes(operation.operands[i], layout));
      }
      for (std::size_t i = 0; i < results.size(); ++i) {
        const TensorLayout layout = result_layout(operation, strategy, mesh, i);
        results[i].push_back({tables_.layout(layout), false});
        result_bytes[i].push_back(local_bytes(operation.results[i], layout));
      }
    }
    table.table = result_.problem.strategy_tables.push_back({std::vector<Cost>(strategies.size())});
    for (auto& entries : operands) table.operands.push_back(tables_.list(std::move(entries)));
    for (auto& entries : results) table.results.push_back(tables_.list(std::move(entries)));
    for (auto& usage : operand_bytes) table.operand_usage.push_back(tables_.usage(std::move(usage)));
    for (auto& usage : result_bytes) table.result_usage.push_back(tables_.usage(std::move(usage)));
    table.strategies = std::make_shared<const std::vector<Strategy>>(std::move(strategies));
  }

  // ---- versions

  void add_version(VersionId id) {
    const TensorVersion& version = versions_.all[id];
    if (version.kind == TensorVersion::Kind::kProduced) {
      const GraphTensor& tensor = graph_.tensor(version.tensor);
      version_lists_[id] = operator_tables_[*tensor.producer]->results[tensor.result];
      return;
    }
    if (version.kind == TensorVersion::Kind::kUpdated) return;  // its layout is the stored version's
    const VersionTables& tables = tables_of(id);
    ProblemNode node;
    node.strategies = tables.costs;
    // A version that is only the source of the next version, made at once, is gone when the operator of that time
    // runs.
    const bool is_gone = version.readers.empty() && !version.next.empty() && version.end == version.begin + 1 &&
                         versions_.all[version.next.back()].begin == version.begin;
    const std::uint32_t shown = std::clamp(shown_until_[version.tensor], version.begin, version.end);
    version_usage_[id] = tables.usage;
    if (tables.usage && !is_gone) node.memory.push_back({*tables.usage, shown, version.end});
    version_lists_[id] = tables.list;
    result_.version_nodes[id] = result_.problem.nodes.push_back(std::move(node));
    result_.choices[id] = tables.choices;
  }

  /// Everything that equal versions (those of the copies of a layer) share.
  struct VersionTables {
    ListId list;
    StrategyTableId costs;
    std::optional<UsageTableId> usage;  // nothing if it takes no memory
    std::shared_ptr<const std::vector<ModelProblem::VersionChoice>> choices;
  };

  const VersionTables& tables_of(VersionId id) {
    const TensorVersion& version = versions_.all[id];
    const TensorType& type = graph_.tensor(version.tensor).type;
    const bool takes_memory = fusion_.in_registers[version.tensor] == 0;
    // What determines the layouts, in the order in which they are found.
    constexpr std::uint64_t kNone = UINT64_MAX;
    std::vector<std::uint64_t> key{tables_.type(type).value(), version.stored ? 1u : 0u, takes_memory ? 1u : 0u};
    if (const std::optional<TensorLayout>& fixed = restrictions_.versions[id]) {
      key.insert(key.end(), {kNone, tables_.layout(*fixed).value()});
    } else if (!restrictions_.among[id].empty()) {
      key.push_back(kNone - 1);
      for (const TensorLayout& layout : restrictions_.among[id]) key.push_back(tables_.layout(layout).value());
    } else if (version.keeping != TensorVersion::Keeping::kFree) {
      key.insert(key.end(), {kNone - 2, kept_as(id).second.value()});
    } else {
      key.push_back(version.kind == TensorVersion::Kind::kDelivered ? 1 : 0);
      key.push_back(version.from ? version_lists_[*version.from].value() : kNone);
      add_operand_layouts(id, [&](ListId list, bool) {
        if (key.back() != list.value()) key.push_back(list.value());
      });
    }
    const auto [known, is_new] = version_tables_.try_emplace(std::move(key));
    VersionTables& tables = known->second;
    if (!is_new) return tables;
    std::vector<ListedLayout> entries;
    for (const LayoutId layout : possible_layouts(id)) {
      if (version.stored) entries.push_back({layout, true});
      entries.push_back({layout, false});
    }
    std::vector<Bytes> bytes;
    std::vector<ModelProblem::VersionChoice> choices;
    for (const ListedLayout& entry : entries) {
      choices.push_back({tables_[entry.layout], entry.shares});
      bytes.push_back(entry.shares ? 0 : local_bytes(type, tables_[entry.layout]));
    }
    tables.costs = free_table(entries.size());
    if (takes_memory) tables.usage = tables_.usage(std::move(bytes));
    tables.list = tables_.list(std::move(entries));
    tables.choices = shared_choices(tables.list, std::move(choices));
    return tables;
  }

  /// The possible layouts: those of the previous version, those that its readers and later readers take, and the
  /// unsharded one. Never partial, except for a delivery that passes a partial tensor on unchanged.
  std::vector<LayoutId> possible_layouts(VersionId id) {
    const TensorVersion& version = versions_.all[id];
    if (const std::optional<TensorLayout>& fixed = restrictions_.versions[id]) return {tables_.layout(*fixed)};
    std::vector<LayoutId> layouts;
    for (const TensorLayout& layout : restrictions_.among[id]) layouts.push_back(tables_.layout(layout));
    if (!layouts.empty()) return layouts;
    std::unordered_map<LayoutId, bool> seen;
    if (version.keeping != TensorVersion::Keeping::kFree) {
      for (const ListedLayout& entry : tables_.entries(kept_as(id).second)) {
        const LayoutId kept = tables_.without_partial(entry.layout);
        if (seen.try_emplace(kept, true).second) layouts.push_back(kept);
      }
      return layouts;
    }
    const auto add = [&](ListId list, bool partial_too) {
      for (const ListedLayout& entry : tables_.entries(list)) {
        if (!partial_too && !tables_[entry.layout].partial.empty()) continue;
        if (seen.try_emplace(entry.layout, true).second) layouts.push_back(entry.layout);
      }
    };
    if (version.from) add(version_lists_[*version.from], version.kind == TensorVersion::Kind::kDelivered);
    add_operand_layouts(id, add);
    const LayoutId whole = tables_.layout(TensorLayout::replicated(graph_.tensor(version.tensor).type.shape.size()));
    if (seen.try_emplace(whole, true).second) layouts.push_back(whole);
    return layouts;
  }

  /// The operator that determines the layout of a version kept as the user says, and the layouts by its strategies.
  std::pair<NodeId, ListId> kept_as(VersionId id) const {
    if (versions_.all[id].keeping == TensorVersion::Keeping::kAsProduced) {
      const VersionId produced = produced_before(versions_, id);
      return {node_of(produced), version_lists_[produced]};
    }
    const Reader reader = kept_for(graph_, versions_, id);
    return {result_.operator_nodes[reader.op], operator_tables_[reader.op]->operands[reader.operand]};
  }

  /// The layouts in which the readers of this version, and of versions made from it, take it.
  template <class Add>
  void add_operand_layouts(VersionId id, const Add& add) {
    for (const Reader& reader : versions_.all[id].readers) {
      add(operator_tables_[reader.op]->operands[reader.operand], false);
    }
    for (const VersionId next : versions_.all[id].next) add_operand_layouts(next, add);
  }

  StrategyTableId free_table(std::size_t size) {
    const auto [found, is_new] = free_tables_.try_emplace(size);
    if (is_new) found->second = result_.problem.strategy_tables.push_back({std::vector<Cost>(size)});
    return found->second;
  }

  std::shared_ptr<const std::vector<ModelProblem::VersionChoice>> shared_choices(
      ListId list, std::vector<ModelProblem::VersionChoice> choices) {
    auto& shared = choices_by_list_[list];
    if (!shared) shared = std::make_shared<const std::vector<ModelProblem::VersionChoice>>(std::move(choices));
    return shared;
  }

  // ---- edges

  NodeId node_of(VersionId id) const {
    const TensorVersion& version = versions_.all[id];
    if (version.kind == TensorVersion::Kind::kProduced) {
      return result_.operator_nodes[*graph_.tensor(version.tensor).producer];
    }
    return *result_.version_nodes[id];
  }

  void add_edge(NodeId from, ListId from_list, NodeId to, ListId to_list, TypeId type, EdgeKind kind, std::int64_t runs,
                const ModelProblem::Communicated& what) {
    wanted_edges_.push_back({from, to, tables_.request({from_list, to_list, type, kind, runs}), what});
  }

  void add_edges_to_version(VersionId id) {
    const TensorVersion& version = versions_.all[id];
    if (!version.from) return;
    const TypeId type = tables_.type(graph_.tensor(version.tensor).type);
    const NodeId from = node_of(*version.from);
    const ListId from_list = version_lists_[*version.from];
    if (version.kind == TensorVersion::Kind::kUpdated) {
      add_edge(from, from_list, node_of(*version.stored), version_lists_[*version.stored], type,
               EdgeKind::kRedistribute, runs_of(graph_, version), {id, {}});
      return;
    }
    const bool made_of_stored = version.stored == version.from;
    add_edge(from, from_list, node_of(id), version_lists_[id], type,
             made_of_stored || !version.stored ? EdgeKind::kRedistribute : EdgeKind::kMadeOrShared,
             runs_of(graph_, version), {id, {}});
    if (version.keeping != TensorVersion::Keeping::kFree) {
      const auto [decides, list] = kept_as(id);
      add_edge(decides, list, node_of(id), version_lists_[id], type, EdgeKind::kKeptAs, 1, {id, {}});
    }
    if (version.stored && !made_of_stored) {
      add_edge(node_of(*version.stored), version_lists_[*version.stored], node_of(id), version_lists_[id], type,
               EdgeKind::kShares, runs_of(graph_, version), {id, {}});
    }
  }

  void add_edges_to_operator(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
      const std::optional<VersionId> version = versions_.read[id][operand];
      if (!version) continue;
      add_edge(node_of(*version), version_lists_[*version], result_.operator_nodes[id],
               operator_tables_[id]->operands[operand], tables_.type(graph_.tensor(op.operands[operand]).type),
               EdgeKind::kRedistribute, graph_.runs(id), {std::nullopt, {id, operand}});
    }
  }

  // ---- costs

  /// Adds an edge, unless all of its costs are zero.
  struct WantedEdge {
    NodeId from;
    NodeId to;
    MatrixRequestId matrix;
    ModelProblem::Communicated what;
  };

  void add_costs() {
    std::vector<CostedOperator> operators;
    for (const CandidateTable* table : new_tables_) {
      std::shared_ptr<const Operation>& shared = shared_operations_[table->operation];
      if (!shared) shared = std::make_shared<const Operation>(graph_.operations()[table->operation]);
      const GraphOperator& first = graph_.operators()[table->first];
      operators.push_back({shared, table->strategies, table->traffic, first.place, first.name});
    }
    ProblemCosts found = problem_costs(operators, tables_, costs_, redistributions_);
    StrategyProblem& problem = result_.problem;
    for (std::size_t i = 0; i < new_tables_.size(); ++i) {
      check_length(new_tables_[i]->first, found.tables[i].costs);
      problem.strategy_tables[new_tables_[i]->table] = std::move(found.tables[i]);
    }
    for (const auto& [parts, table] : summed_tables_) {
      for (const auto& [part, runs] : parts)
        add_runs(problem.strategy_tables[part], runs, problem.strategy_tables[table]);
    }
    IdVector<MatrixRequestId, std::optional<MatrixId>> matrices(tables_.requests().size());
    for (const WantedEdge& edge : wanted_edges_) {
      std::optional<CostMatrix>& costs = found.of_requests[edge.matrix];
      std::optional<MatrixId>& matrix = matrices[edge.matrix];
      if (!costs) continue;
      if (!matrix) matrix = problem.matrices.push_back(std::move(*costs));
      problem.edges.push_back({edge.from, edge.to, *matrix});
      result_.communicated.push_back(edge.what);
    }
  }

  void check_length(OperatorId id, const std::vector<Cost>& costs) const {
    if (std::any_of(costs.begin(), costs.end(), [](const Cost& cost) { return cost.communication < kForbidden; }))
      return;
    throw InputError(graph_.operators()[id].place,
                     "{}: takes more than {} hours with every strategy; steps that long are not planned",
                     graph_.operators()[id].name, kLongestStep / kPicosecondsPerSecond / 3600);
  }

  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const CostModel& costs_;
  RedistributionPlanner& redistributions_;
  const Restrictions& restrictions_;
  const std::shared_ptr<const KernelFusion> known_fusion_;
  const KernelFusion& fusion_;
  ModelProblem result_;
  LayoutTables tables_;
  IdVector<OperationId, std::shared_ptr<const Operation>> shared_operations_;
  IdVector<OperationId, std::vector<std::unique_ptr<CandidateTable>>> tables_by_operation_;
  std::vector<const CandidateTable*> new_tables_;  // in the order of creation
  IdVector<OperatorId, const CandidateTable*> operator_tables_;
  IdVector<NodeId, TableRuns> node_tables_;             // of operators: everything the node stands for
  std::map<TableRuns, StrategyTableId> summed_tables_;  // the final costs
  IdVector<TensorId, char> may_be_partial_;
  IdVector<TensorId, std::uint32_t> shown_until_;
  IdVector<VersionId, ListId> version_lists_;
  IdVector<VersionId, std::optional<UsageTableId>> version_usage_;  // nothing if it takes no memory
  std::vector<WantedEdge> wanted_edges_;
  std::map<std::vector<std::uint64_t>, VersionTables> version_tables_;  // never iterated over
  std::map<std::size_t, StrategyTableId> free_tables_;
  std::unordered_map<ListId, std::shared_ptr<const std::vector<ModelProblem::VersionChoice>>> choices_by_list_;
};

}  // namespace

// Work that is not sharded over all devices is repeated. (Pieces of unequal sizes contain padding, but no repeated
// work: measured in flops, 64 pieces of a batch of 1520 would appear to repeat 1 % of it.)
void keep_least_work(const Operation& operation, std::vector<Strategy>& strategies) {
  if (operation.type->work != WorkKind::kContraction) return;
  const auto pieces = [](const Strategy& strategy) {
    std::int64_t product = 1;
    for (const std::vector<AxisRef>& axes : strategy.factors) product *= num_pieces(axes);
    return product;
  };
  std::int64_t most = 1;
  for (const Strategy& strategy : strategies) most = std::max(most, pieces(strategy));
  std::erase_if(strategies, [&](const Strategy& strategy) { return pieces(strategy) < most; });
}

Restrictions no_restrictions(const OperatorGraph& graph, const TensorVersions& versions) {
  Restrictions restrictions;
  restrictions.operators.resize(graph.operators().size());
  restrictions.versions.resize(versions.all.size());
  restrictions.among.resize(versions.all.size());
  return restrictions;
}

ModelProblem build_problem(const OperatorGraph& graph, const TensorVersions& versions, const CostModel& costs,
                           RedistributionPlanner& redistributions, const Restrictions& restrictions) {
  return Build(graph, versions, costs, redistributions, restrictions).run();
}

}  // namespace shardplan
