// A redistribution begins with its source in memory and ends with its result, so its memory joins onto what the other
// nodes count: a version that it is the last to read is counted until it begins, what it makes is counted from its end
// on, and its node counts the fullest of its steps. Where a source may be in another tensor's memory, or is still
// read later, only the additional bytes are counted.

#include "planner/problem/running_memory.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "layouts/uneven.h"
#include "operators/operation.h"
#include "operators/operator_type.h"
#include "planner/problem/copy_nodes.h"

namespace shardplan {
namespace {

class RunningMemory {
 public:
  RunningMemory(const CopiesInput& input, const LayoutTables& layouts, RedistributionPlanner& redistributions,
                ModelProblem& model)
      : input_(input),
        graph_(input.graph),
        versions_(input.versions),
        layouts_(layouts),
        redistributions_(redistributions),
        model_(model),
        nodes_(layouts, model.problem) {}

  void run(const std::vector<HeldOperand>& held) {
    find_moves();
    find_own_memory();
    hand_over_what_is_read_twice();
    for (ProblemNode& node : model_.problem.nodes) {
      for (MemoryUse& use : node.memory) use = with_new_times(use);
    }
    for (const VersionId id : versions_.all.ids()) count_around_moves(id);
    for (const HeldOperand& operand : held) count_before_reader(operand);
    count_handed_over();
    for (const Move& move : moves_) count(move);
    StrategyProblem& problem = model_.problem;
    problem.memory_limits.assign(run_.back() + 1, problem.memory_limits.front());
    for (const std::uint32_t time : run_) model_.times.emplace_back(time, time);
  }

 private:
  /// A redistribution from a version: to another version or to an operand of an operator.
  struct Move {
    VersionId from;
    std::optional<VersionId> version;
    Reader reader;             // if there is no version
    std::uint32_t before = 0;  // the schedule's time
    std::uint32_t time = 0;    // the new one
    bool frees = false;        // nothing else needs the source, which is counted until it begins
  };
  /// What a redistribution adds to what else is counted.
  enum class Kind {
    kAll,           // what it reads and makes: its source is not counted while it runs
    kBesideSource,  // what it makes
    kIntoOldValue,  // all but its last step's result, which overwrites what is stored
  };
  /// The memory of a version that is in no other's.
  struct Own {
    NodeId node;
    UsageTableId usage;
    std::uint32_t end = 0;  // in the schedule
  };

  bool in_registers(TensorId tensor) const { return input_.fusion.in_registers[tensor] != 0; }

  /// In the order of the program (program/lower.cc).
  void find_moves() {
    std::vector<std::vector<Move>> made(versions_.num_times), taken(versions_.num_times);
    for (const VersionId id : versions_.all.ids()) {
      const TensorVersion& version = versions_.all[id];
      if (in_registers(version.tensor)) continue;
      if (version.from) made[version.begin].push_back({*version.from, id, {}, version.begin, 0, false});
      if (version.is_taken_early) {
        taken[version.end].push_back({id, std::nullopt, version.readers.front(), version.end, 0, false});
      }
    }
    move_of_version_.resize(versions_.all.size());
    std::uint32_t next = 0;
    const auto add = [&](Move move) {
      move.time = next++;
      if (move.version) {
        move_of_version_[*move.version] = moves_.size();
      } else {
        move_of_reader_[{move.reader.op, move.reader.operand}] = moves_.size();
      }
      moves_.push_back(std::move(move));
    };
    for (std::uint32_t time = 0; time < versions_.num_times; ++time) {
      for (Move& move : made[time]) add(std::move(move));
      for (Move& move : taken[time]) add(std::move(move));
      if (time + 1 < versions_.num_times) {
        const OperatorId op(time);
        for (std::size_t operand = 0; operand < versions_.read[op].size(); ++operand) {
          const std::optional<VersionId> version = versions_.read[op][operand];
          if (!version || versions_.all[*version].is_taken_early) continue;
          if (!in_registers(versions_.all[*version].tensor)) {
            add({*version, std::nullopt, {op, operand}, time, 0, false});
          }
        }
      }
      run_.push_back(next++);
    }
  }

  void find_own_memory() {
    own_.resize(versions_.all.size());
    for (const VersionId id : versions_.all.ids()) {
      const TensorVersion& version = versions_.all[id];
      if (in_registers(version.tensor) || version.kind == TensorVersion::Kind::kUpdated) continue;
      if (version.kind == TensorVersion::Kind::kProduced) {
        if (version.begin == version.end) continue;  // in place of an old value
        const GraphTensor& tensor = graph_.tensor(version.tensor);
        const CandidateTable& table = *input_.tables[*tensor.producer];
        own_[id] = {model_.operator_nodes[*tensor.producer], table.result_usage[tensor.result], version.end};
      } else if (input_.version_usage[id]) {
        const NodeId node = *model_.version_nodes[id];
        const std::vector<MemoryUse>& memory = model_.problem.nodes[node].memory;
        own_[id] = {node, *input_.version_usage[id], memory.empty() ? version.begin : memory.front().end};
      }
    }
  }

  /// The end of a version that its last reader may replace by copies, although it does not hand it over. Nothing if it
  /// is counted for as long as it is needed.
  std::optional<std::uint32_t> freed_at(const TensorVersion& version, std::uint32_t end) const {
    if (version.is_handed_over || version.stored || version.readers.empty() || !version.next.empty())
      return std::nullopt;
    const OperatorId last = version.readers.back().op;
    const auto time = static_cast<std::uint32_t>(last.value());
    if (end != time + 1) return std::nullopt;
    const bool is_view = graph_.operation(last).type->work == WorkKind::kView;  // made when it is viewed
    const auto reads = std::count_if(version.readers.begin(), version.readers.end(),
                                     [&](const Reader& reader) { return reader.op == last; });
    return is_view || reads > 1 ? std::optional(time) : std::nullopt;
  }

  /// Where the last reader takes a version twice, the version may be free once it has its copies, of which at least one
  /// is in memory while the operator runs.
  void hand_over_what_is_read_twice() {
    for (const VersionId id : versions_.all.ids()) {
      const TensorVersion& version = versions_.all[id];
      if (!own_[id] || version.kind == TensorVersion::Kind::kProduced) continue;
      const std::optional<std::uint32_t> time = freed_at(version, own_[id]->end);
      if (!time) continue;
      own_[id]->end = *time;
      const NodeId node = own_[id]->node;
      end_memory(node, *time);
      for (const ModelProblem::Copy& copy : model_.copies) {
        if (copy.taker == node) end_memory(copy.node, *time);
      }
      const Reader& last = version.readers.back();
      const bool is_view = graph_.operation(last.op).type->work == WorkKind::kView;
      if (is_view || input_.shown_until[version.tensor] > *time) continue;
      const UsageTableId usage = input_.tables[last.op]->operand_usage[last.operand];
      model_.problem.nodes[model_.operator_nodes[last.op]].memory.push_back({usage, *time, *time + 1});
    }
  }

  void end_memory(NodeId node, std::uint32_t time) {
    for (MemoryUse& use : model_.problem.nodes[node].memory) use.end = std::max(use.begin, std::min(use.end, time));
  }

  MemoryUse with_new_times(const MemoryUse& use) const {
    if (use.begin >= use.end) return {use.usage, run_[use.begin], run_[use.begin]};
    return {use.usage, run_[use.begin], run_[use.end - 1] + 1};
  }

  void hold(NodeId node, UsageTableId usage, std::uint32_t begin, std::uint32_t end) {
    if (begin < end) model_.problem.nodes[node].memory.push_back({usage, begin, end});
  }

  /// The version from where it is made to the first operator beside it, and from the last one to the redistribution
  /// that frees it.
  void count_around_moves(VersionId id) {
    if (!own_[id]) return;
    const TensorVersion& version = versions_.all[id];
    const Own& own = *own_[id];
    const std::uint32_t shown = input_.shown_until[version.tensor];
    const bool is_stored = version.kind == TensorVersion::Kind::kStored;
    const std::optional<std::size_t> made = move_of_version_[id];
    std::uint32_t begin = is_stored ? 0 : made ? moves_[*made].time + 1 : run_[version.begin];
    if (version.begin < own.end) {
      if (shown <= version.begin) hold(own.node, own.usage, begin, run_[version.begin]);
      begin = run_[own.end - 1] + 1;
    }
    const std::optional<std::size_t> last = last_to_read(id, own.end);
    if (!last || shown > own.end || is_viewed_read(version.tensor, own.end)) return;
    moves_[*last].frees = true;
    hold(own.node, own.usage, begin, moves_[*last].time);
  }

  /// The redistribution that reads the version when it ends. Not if the version, or what is made from it, may be in a
  /// stored tensor's memory.
  std::optional<std::size_t> last_to_read(VersionId id, std::uint32_t time) const {
    if (versions_.all[id].stored) return std::nullopt;
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      if (moves_[i].from == id && moves_[i].before == time) last = i;
    }
    if (last && moves_[*last].version && versions_.all[*moves_[*last].version].stored) return std::nullopt;
    return last;
  }

  /// Whether what a tensor is a view of is redistributed at that time, and so counted until then.
  bool is_viewed_read(TensorId tensor, std::uint32_t time) const {
    while (input_.shown_until[tensor] > 0) {
      tensor = graph_.operators()[*graph_.tensor(tensor).producer].operands.front();
      const bool is_read = std::any_of(moves_.begin(), moves_.end(), [&](const Move& move) {
        return move.before == time && versions_.all[move.from].tensor == tensor;
      });
      if (is_read) return true;
    }
    return false;
  }

  /// An operand from its redistribution on.
  void count_before_reader(const HeldOperand& held) {
    const auto move = move_of_reader_.find({held.reader.op, held.reader.operand});
    if (move == move_of_reader_.end()) return;
    hold(held.node, held.usage, moves_[move->second].time + 1, run_[held.reader.op.value()]);
  }

  void count_handed_over() {
    for (const OperatorId id : graph_.operators().ids()) {
      const GraphOperator& op = graph_.operators()[id];
      for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
        const std::optional<VersionId> version = versions_.read[id][operand];
        if (!version || !versions_.all[*version].is_handed_over_to({id, operand})) continue;
        if (in_registers(op.operands[operand]) || input_.shown_until[op.operands[operand]] > id.value()) continue;
        const auto move = move_of_reader_.find({id, operand});
        if (move == move_of_reader_.end()) continue;
        hold(model_.operator_nodes[id], input_.tables[id]->operand_usage[operand], moves_[move->second].time + 1,
             run_[moves_[move->second].before]);
      }
    }
  }

  NodeId node_of(VersionId id) const {
    const TensorVersion& version = versions_.all[id];
    if (version.kind == TensorVersion::Kind::kProduced) {
      return model_.operator_nodes[*graph_.tensor(version.tensor).producer];
    }
    return *model_.version_nodes[version.kind == TensorVersion::Kind::kUpdated ? *version.stored : id];
  }
  ListId list_of(VersionId id) const {
    const TensorVersion& version = versions_.all[id];
    return input_.version_lists[version.kind == TensorVersion::Kind::kUpdated ? *version.stored : id];
  }

  Kind kind_of(const Move& move) const {
    if (move.version && versions_.all[*move.version].kind == TensorVersion::Kind::kUpdated) return Kind::kIntoOldValue;
    return move.frees ? Kind::kAll : Kind::kBesideSource;
  }

  void count(const Move& move) {
    const NodeId source = node_of(move.from);
    const NodeId taker = move.version ? node_of(*move.version) : model_.operator_nodes[move.reader.op];
    const ListId sources = list_of(move.from);
    const ListId takers =
        move.version ? list_of(*move.version) : input_.tables[move.reader.op]->operands[move.reader.operand];
    const TensorId tensor = versions_.all[move.from].tensor;
    if (taker == source) {
      std::vector<Bytes> bytes;
      for (std::size_t i = 0; i < layouts_.entries(takers).size(); ++i) {
        bytes.push_back(held_by(layouts_.entries(sources)[i], layouts_.entries(takers)[i], tensor, kind_of(move)));
      }
      hold(taker, model_.problem.usage_tables.push_back({std::move(bytes)}), move.time, move.time + 1);
      return;
    }
    const CopyTables& tables = tables_of(takers, sources, tensor, kind_of(move));
    if (!tables.positions) return;
    StrategyProblem& problem = model_.problem;
    const NodeId node = problem.nodes.push_back({tables.costs, {}});
    hold(node, tables.usage, move.time, move.time + 1);
    problem.edges.push_back({taker, node, tables.of_taker});
    problem.edges.push_back({source, node, tables.of_source});
    model_.communicated.resize(problem.edges.size(), {move.version, move.reader});
    model_.copies.push_back({operator_of(move), taker, source, {}, node, tables.positions});
  }

  OperatorId operator_of(const Move& move) const {
    if (!move.version) return move.reader.op;
    const GraphTensor& tensor = graph_.tensor(versions_.all[move.from].tensor);
    return tensor.producer ? OperatorId(*tensor.producer) : tensor.readers.front().op;
  }

  /// Without positions: nothing is held.
  const CopyTables& tables_of(ListId takers, ListId sources, TensorId tensor, Kind kind) {
    const TensorType& type = graph_.tensor(tensor).type;
    const std::tuple key(takers.value(), sources.value(), type.shape, element_bytes(type.dtype), kind);
    const auto [known, is_new] = tables_.try_emplace(key);
    if (!is_new) return known->second;
    std::vector<Bytes> bytes;
    for (const ListedLayout& to : layouts_.entries(takers)) {
      for (const ListedLayout& from : layouts_.entries(sources)) bytes.push_back(held_by(from, to, tensor, kind));
    }
    const bool is_nothing = std::all_of(bytes.begin(), bytes.end(), [](Bytes one) { return one == 0; });
    if (!is_nothing) {
      known->second = nodes_.by_pair(bytes, layouts_.entries(takers).size(), layouts_.entries(sources).size());
    }
    return known->second;
  }

  /// What one redistribution adds at most.
  Bytes held_by(const ListedLayout& from, const ListedLayout& to, TensorId tensor, Kind kind) {
    if (to.shares) return 0;
    if (from.shares && kind == Kind::kAll) kind = Kind::kBesideSource;
    const TensorType& type = graph_.tensor(tensor).type;
    const auto [known, is_new] =
        held_.try_emplace({from.layout, to.layout, type.shape, element_bytes(type.dtype), kind});
    if (!is_new) return known->second;
    Bytes input = kind == Kind::kAll ? local_bytes(type, layouts_[from.layout]) : 0;
    Bytes most = input;
    if (from.layout == to.layout) return known->second = most;
    if (is_uneven(layouts_[from.layout], type.shape) || is_uneven(layouts_[to.layout], type.shape)) {
      return known->second = held_at_ends(input, local_bytes(type, layouts_[to.layout]), type, kind);
    }
    const std::vector<CollectiveStep>& steps =
        redistributions_.plan(layouts_[from.layout], layouts_[to.layout], type.shape, element_bytes(type.dtype)).steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const bool is_in_place = kind == Kind::kIntoOldValue && i + 1 == steps.size();
      const Bytes output = is_in_place ? 0 : local_bytes(type, steps[i].after);
      most = std::max(most, input + output);
      input = output;
    }
    return known->second = most;
  }

  /// A lower bound from the first step's source and the last one's result, because planning steps between uneven shards
  /// takes long: what a step reads or makes is at least one device's share of the tensor.
  Bytes held_at_ends(Bytes source, Bytes result, const TensorType& type, Kind kind) const {
    const std::int64_t devices = redistributions_.mesh().num_devices();
    const Bytes share = (type.bytes() + devices - 1) / devices;
    if (kind == Kind::kAll) return std::max(source, result) + share;
    return kind == Kind::kBesideSource ? result : 0;
  }

  const CopiesInput& input_;
  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const LayoutTables& layouts_;
  RedistributionPlanner& redistributions_;
  ModelProblem& model_;
  CopyNodes nodes_;
  std::vector<Move> moves_;
  std::vector<std::uint32_t> run_;  // by time of the schedule: when its operator runs
  IdVector<VersionId, std::optional<std::size_t>> move_of_version_;
  std::map<std::pair<OperatorId, std::size_t>, std::size_t> move_of_reader_;
  IdVector<VersionId, std::optional<Own>> own_;
  std::map<std::tuple<std::size_t, std::size_t, Shape, Bytes, Kind>, CopyTables> tables_;
  std::map<std::tuple<LayoutId, LayoutId, Shape, Bytes, Kind>, Bytes> held_;
};

}  // namespace

void add_running_memory(const CopiesInput& input, const LayoutTables& layouts, const std::vector<HeldOperand>& held,
                        RedistributionPlanner& redistributions, ModelProblem& model) {
  RunningMemory(input, layouts, redistributions, model).run(held);
}

}  // namespace shardplan
