#include "strategies/user_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "layouts/mindspore_layout.h"
#include "layouts/uneven.h"
#include "strategies/enumerate.h"

// An operator's entries are read one operand after the other, and every dimension that an entry shards decides the
// factor that the dimension walks. So entries that shard one factor in two ways contradict each other, whatever their
// form. A layout names axes, so its decision is complete. A tuple only counts pieces: which axes they are depends on all
// tuples of the operator together, since MindSpore's device matrix assigns consecutive pieces of the row-major ranks to
// the factors in order. Factors that no entry decides are enumerated over the remaining axes.

namespace shardplan {
namespace {

/// "1, 2, 5 or 10 pieces".
std::string divisors_text(std::int64_t size) {
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= size && d <= 4096; ++d) {
    if (size % d == 0) divisors.push_back(d);
  }
  std::string text;
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    text += i == 0 ? "" : i + 1 == divisors.size() ? " or " : ", ";
    text += std::to_string(divisors[i]);
  }
  return text + " pieces";
}

/// Whose entries `op` has, for messages.
std::string owner_of(const GraphOperator& op) {
  return op.strategy->owner.empty() ? op.name.str() : op.strategy->owner;
}

bool is_free(const AxisRef& piece, const std::vector<AxisRef>& used) {
  return std::none_of(used.begin(), used.end(), [&](const AxisRef& axis) { return overlaps(axis, piece); });
}

std::vector<AxisRef> all_axes(const DeviceMesh& mesh) {
  std::vector<AxisRef> axes;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) axes.push_back(mesh.whole(axis));
  return axes;
}

/// Said where attention cuts queries and keys over the same devices.
constexpr char kNoRing[] =
    "keys do not go around a ring of the devices that cut the queries: leave keys and values whole, and they are "
    "gathered, or cut them over other devices";

class Resolver {
 public:
  Resolver(const OperatorGraph& graph, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces, UnevenCuts uneven)
      : graph_(graph), mesh_(mesh), pieces_(pieces), uneven_(uneven) {}

  UserStrategies run() {
    result_.operators.resize(graph_.operators().size());
    result_.stored.resize(graph_.tensors().size());
    result_.requested.resize(graph_.tensors().size());
    for (const OperatorId op : graph_.operators().ids()) {
      const UserStrategy& user = graph_.operators()[op].strategy;
      if (!user.in.empty()) resolve_in(op);
      if (!user.out.empty()) resolve_out(op);
    }
    for (const TensorId tensor : graph_.tensors().ids()) {
      if (graph_.tensor(tensor).layout) resolve_stored(tensor);
    }
    if (!faults_.empty()) throw InputError(std::move(faults_));
    return std::move(result_);
  }

 private:
  /// What the entries decide about the factors of one operator. The pieces of tuples become axes once all are known.
  struct Decided {
    std::vector<std::int64_t> cuts;          // by factor, from tuples; 0: none
    std::vector<std::size_t> cut_by;         // by factor: the operand whose entry decided it
    std::vector<std::vector<AxisRef>> axes;  // by factor, from layouts
    std::vector<char> is_decided;            // by factor
  };

  void fault(const SourcePlace& place, std::string message, std::string hint = {}) {
    faults_.push_back({place, std::move(message), std::move(hint)});
  }

  void resolve_in(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    const std::vector<StrategyEntry>& entries = op.strategy->in;
    // MindSpore does not count constants as inputs, so a list without them is accepted too.
    std::vector<std::size_t> operands;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (graph_.tensor(op.operands[i]).kind != TensorKind::kConstant) operands.push_back(i);
    }
    if (entries.size() == op.operands.size()) {
      operands.resize(op.operands.size());
      std::iota(operands.begin(), operands.end(), std::size_t{0});
    } else if (entries.size() != operands.size()) {
      fault(op.strategy->in_place, fmt::format("{}: in_strategy has {} {}, {} has {} tensor input{}", op.name,
                                               entries.size(), entries.size() == 1 ? "entry" : "entries", op.name,
                                               operands.size(), operands.size() == 1 ? "" : "s"));
      return;
    }
    Decided decided;
    const std::size_t num_factors = operation.rule.factors.size();
    decided.cuts.assign(num_factors, 0);
    decided.cut_by.assign(num_factors, 0);
    decided.axes.resize(num_factors);
    decided.is_decided.assign(num_factors, 0);
    const std::size_t faults_before = faults_.size();
    for (std::size_t i = 0; i < entries.size(); ++i) read_entry(id, operands[i], i, entries[i], decided);
    if (faults_.size() > faults_before) return;
    if (!tuples_to_axes(id, decided)) return;

    Strategy strategy;
    strategy.factors = decided.axes;
    const std::string wrong = check_strategy(operation, strategy, mesh_);
    if (!wrong.empty()) {
      const bool is_ring = cuts_queries_and_keys(operation, [&](std::uint32_t s, std::uint32_t t) {
        return std::ranges::any_of(decided.axes[t],
                                   [&](const AxisRef& axis) { return !is_free(axis, decided.axes[s]); });
      });
      fault(op.strategy->in_place, fmt::format("{}: {}", owner_of(op), wrong), is_ring ? kNoRing : "");
      return;
    }
    result_.operators[id] = complete(operation, strategy, decided.is_decided);
    if (op.pass == Pass::kUpdate && op.parameter) store_states(id);
  }

  /// Whether `both` holds for the factors of the queries and the keys of an attention.
  template <class Both>
  static bool cuts_queries_and_keys(const Operation& operation, const Both& both) {
    if (operation.type->role != OperatorRole::kAttention) return false;
    const std::optional<std::uint32_t> queries = operation.rule.find("s"), keys = operation.rule.find("t");
    return queries && keys && both(*queries, *keys);
  }

  /// Optimizer states are stored in the layouts in which the user's strategy gives them to the update.
  void store_states(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (graph_.tensor(op.operands[i]).kind != TensorKind::kState) continue;
      result_.stored[op.operands[i]] = operand_layout(graph_.operation(id), result_.operators[id][0], mesh_, i);
    }
  }

  void read_entry(OperatorId id, std::size_t operand, std::size_t number, const StrategyEntry& entry,
                  Decided& decided) {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    const GraphTensor& tensor = graph_.tensor(op.operands[operand]);
    const Shape& shape = tensor.type.shape;
    const TensorWalk& walk = operation.rule.operands[operand];
    switch (entry.kind) {
      case StrategyEntry::Kind::kFollow:
        return;
      case StrategyEntry::Kind::kTuple:
        if (entry.tuple.size() != shape.size()) {
          fault(entry.place, fmt::format("{}: entry {} has {} value{}, {} has {} dimension{}", owner_of(op), number + 1,
                                         entry.tuple.size(), entry.tuple.size() == 1 ? "" : "s", tensor.name,
                                         shape.size(), shape.size() == 1 ? "" : "s"));
          return;
        }
        if (!check_tuple(entry, owner_of(op), op.strategy->owner.empty() ? "in_strategy" : "the tuple", tensor.name,
                         shape)) {
          return;
        }
        for (std::size_t d = 0; d < shape.size(); ++d)
          record_cut(id, operand, d, walk[d], entry.tuple[d], entry.place, decided);
        return;
      case StrategyEntry::Kind::kDataParallel: {
        if (shape.empty()) return;
        if (!may_be_cut(shape[0], mesh_.num_devices())) {
          fault(entry.place,
                fmt::format("{}: data parallel (null) splits dimension 0 of {} into {}, but its size is {}{}",
                            owner_of(op), tensor.name, mesh_.num_devices(), shape[0],
                            empty_pieces_text(shape[0], mesh_.num_devices())),
                "possible: " + divisors_text(shape[0]));
          return;
        }
        record_axes(id, operand, 0, walk[0], all_axes(mesh_), entry.place, decided);
        for (std::size_t d = 1; d < shape.size(); ++d) record_axes(id, operand, d, walk[d], {}, entry.place, decided);
        return;
      }
      case StrategyEntry::Kind::kLayout: {
        const std::optional<TensorLayout> layout = read_layout(entry, owner_of(op), tensor.name, shape);
        if (!layout) return;
        if (!layout->partial.empty()) {
          fault(entry.place, fmt::format("{}: {} cannot be asked for as partial", owner_of(op), tensor.name));
          return;
        }
        for (std::size_t d = 0; d < shape.size(); ++d) {
          if (layout->dimensions[d].parts.size() > 1) {
            record_parts(id, operand, d, walk[d], layout->dimensions[d], entry.place, decided);
          } else {
            record_axes(id, operand, d, walk[d], layout->dimensions[d].parts[0].axes, entry.place, decided);
          }
        }
        return;
      }
    }
  }

  bool may_be_cut(std::int64_t size, std::int64_t pieces) const {
    return size % pieces == 0 || (uneven_ != UnevenCuts::kNone && can_be_split(size, pieces));
  }
  std::string empty_pieces_text(std::int64_t size, std::int64_t pieces) const {
    if (uneven_ == UnevenCuts::kNone || pieces > size) return {};
    const std::int64_t piece = largest_piece(size, pieces);
    return fmt::format("; pieces of {} would leave {} of them empty", piece, pieces - largest_piece(size, piece));
  }

  bool check_tuple(const StrategyEntry& entry, const std::string& owner, std::string_view what,
                   const std::string& tensor, const Shape& shape) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t cut = entry.tuple[d];
      if (cut < 1) {
        fault(entry.place, fmt::format("{}: {} {} has the value {}; expected at least 1", owner, what,
                                       tuple_text(entry.tuple), cut));
        return false;
      }
      if (!may_be_cut(shape[d], cut)) {
        fault(entry.place,
              fmt::format("{}: {} {} splits dimension {} of {} into {}, but its size is {}{}", owner, what,
                          tuple_text(entry.tuple), d, tensor, cut, shape[d], empty_pieces_text(shape[d], cut)),
              fmt::format("possible: {}, or a size that {} divides", divisors_text(shape[d]), cut));
        return false;
      }
    }
    return true;
  }

  std::optional<TensorLayout> read_layout(const StrategyEntry& entry, const std::string& owner,
                                          const std::string& tensor, const Shape& shape) {
    try {
      TensorLayout layout = parse_layout(entry.layout, mesh_);
      const std::string wrong =
          uneven_ == UnevenCuts::kNone ? check_layout(layout, mesh_, shape) : check_uneven_layout(layout, mesh_, shape);
      if (wrong.empty()) return layout;
      fault(entry.place, fmt::format("{}: layout {} of {}: {}", owner, entry.layout, tensor, wrong));
    } catch (const InputError& error) {
      for (const Diagnostic& diagnostic : error.diagnostics()) {
        fault(entry.place, fmt::format("{}: {}", owner, diagnostic.message), diagnostic.hint);
      }
    }
    return std::nullopt;
  }

  /// A tuple's number of pieces of one dimension, assigned to the factors that it walks, the major ones first.
  void record_cut(OperatorId id, std::size_t operand, std::size_t dimension, const DimensionWalk& walk,
                  std::int64_t cut, const SourcePlace& place, Decided& decided) {
    if (walk.window) {
      record_factor_cut(id, operand, walk.window->output, cut, place, decided);
      return;
    }
    const std::vector<Factor>& factors = graph_.operation(id).rule.factors;
    for (const std::uint32_t factor : walk.factors) {
      // A dimension of one factor may be split unequally; of several factors each takes what divides it.
      const std::int64_t here = walk.factors.size() == 1 ? cut : std::gcd(cut, factors[factor].size);
      record_factor_cut(id, operand, factor, here, place, decided);
      cut /= here;
      if (here != factors[factor].size) break;
    }
    if (cut != 1) {
      fault(place,
            fmt::format("{}: dimension {} of {} cannot be split that way by {}", graph_.operators()[id].name, dimension,
                        graph_.tensor(graph_.operators()[id].operands[operand]).name, graph_.operation(id).type->name));
    }
  }

  void record_factor_cut(OperatorId id, std::size_t operand, std::uint32_t factor, std::int64_t cut,
                         const SourcePlace& place, Decided& decided) {
    const GraphOperator& op = graph_.operators()[id];
    const auto tensor_name = [&](std::size_t i) { return graph_.tensor(op.operands[i]).name; };
    if (decided.cuts[factor] != 0 && decided.cuts[factor] != cut) {
      const Factor& info = graph_.operation(id).rule.factors[factor];
      fault(place,
            fmt::format("{}: cuts {} in {} along the {} but {} in {}", op.name, tensor_name(decided.cut_by[factor]),
                        decided.cuts[factor],
                        info.kind == FactorKind::kReduction ? std::string("summed dimension")
                                                            : fmt::format("dimension they share ({})", info.name),
                        tensor_name(operand), cut));
      return;
    }
    decided.cuts[factor] = cut;
    decided.cut_by[factor] = operand;
    decided.is_decided[factor] = 1;
  }

  void record_axes(OperatorId id, std::size_t operand, std::size_t dimension, const DimensionWalk& walk,
                   const std::vector<AxisRef>& axes, const SourcePlace& place, Decided& decided) {
    if (walk.window || walk.factors.size() == 1) {
      record_factor_axes(id, operand, walk.window ? walk.window->output : walk.factors[0], axes, place, decided);
      return;
    }
    // A compound dimension: whole axes to the major factor until it is used up.
    const std::vector<Factor>& factors = graph_.operation(id).rule.factors;
    std::size_t at = 0;
    for (const std::uint32_t factor : walk.factors) {
      std::vector<AxisRef> here;
      while (at < axes.size() && factors[factor].size % (num_pieces(here) * axes[at].size) == 0)
        here.push_back(axes[at++]);
      const bool used_up = num_pieces(here) == factors[factor].size;
      record_factor_axes(id, operand, factor, here, place, decided);
      if (!used_up) break;
    }
    if (at < axes.size()) {
      fault(place,
            fmt::format("{}: dimension {} of {} cannot be split by {} here", graph_.operators()[id].name, dimension,
                        graph_.tensor(graph_.operators()[id].operands[operand]).name, mesh_.to_string(axes)));
    }
  }

  void record_parts(OperatorId id, std::size_t operand, std::size_t dimension, const DimensionWalk& walk,
                    const DimensionLayout& layout, const SourcePlace& place, Decided& decided) {
    const std::vector<Factor>& factors = graph_.operation(id).rule.factors;
    const bool fits =
        !walk.window && walk.factors.size() == layout.parts.size() &&
        std::equal(walk.factors.begin(), walk.factors.end(), layout.parts.begin(),
                   [&](std::uint32_t factor, const DimensionPart& part) { return factors[factor].size == part.size; });
    if (!fits) {
      fault(place,
            fmt::format("{}: dimension {} of {} does not consist of these parts for {}", graph_.operators()[id].name,
                        dimension, graph_.tensor(graph_.operators()[id].operands[operand]).name,
                        graph_.operation(id).type->name));
      return;
    }
    for (std::size_t i = 0; i < layout.parts.size(); ++i) {
      record_factor_axes(id, operand, walk.factors[i], layout.parts[i].axes, place, decided);
    }
  }

  void record_factor_axes(OperatorId id, std::size_t operand, std::uint32_t factor, const std::vector<AxisRef>& axes,
                          const SourcePlace& place, Decided& decided) {
    const GraphOperator& op = graph_.operators()[id];
    if (decided.is_decided[factor] && decided.cuts[factor] == 0 && decided.axes[factor] != axes) {
      fault(place, fmt::format("{}: {} lies over {} in {} but over {} in {}", op.name,
                               graph_.operation(id).rule.factors[factor].name, mesh_.to_string(decided.axes[factor]),
                               graph_.tensor(op.operands[decided.cut_by[factor]]).name, mesh_.to_string(axes),
                               graph_.tensor(op.operands[operand]).name));
      return;
    }
    decided.axes[factor] = axes;
    decided.cut_by[factor] = operand;
    decided.is_decided[factor] = 1;
  }

  /// Maps the tuples' pieces to the ranks: consecutive pieces in the order of the factors, replication last.
  bool tuples_to_axes(OperatorId id, Decided& decided) {
    const GraphOperator& op = graph_.operators()[id];
    std::vector<std::int64_t> matrix;
    std::vector<std::size_t> factor_of;
    std::int64_t product = 1;
    for (std::size_t factor = 0; factor < decided.cuts.size(); ++factor) {
      if (decided.cuts[factor] <= 1) continue;
      matrix.push_back(decided.cuts[factor]);
      factor_of.push_back(factor);
      product *= decided.cuts[factor];
    }
    if (matrix.empty()) return true;
    const std::int64_t devices = mesh_.num_devices();
    if (product > devices || devices % product != 0) {
      std::string factors;
      for (const std::int64_t cut : matrix) factors += (factors.empty() ? "" : " x ") + std::to_string(cut);
      const bool is_ring = cuts_queries_and_keys(graph_.operation(id), [&](std::uint32_t s, std::uint32_t t) {
        return decided.cuts[s] > 1 && decided.cuts[s] == decided.cuts[t];
      });
      const char* const hint =
          product < devices ? "the number of devices must be a multiple" : (is_ring ? kNoRing : "");
      fault(op.strategy->in_place,
            fmt::format("{}: needs {} devices ({}), there are {}", owner_of(op), product, factors, devices), hint);
      return false;
    }
    const std::optional<std::vector<std::vector<AxisRef>>> pieces = split_ranks(mesh_, matrix);
    if (!pieces) {
      fault(op.strategy->in_place,
            fmt::format("{}: these cuts do not fit the mesh {}", owner_of(op), mesh_.to_string()));
      return false;
    }
    for (std::size_t i = 0; i < factor_of.size(); ++i) decided.axes[factor_of[i]] = (*pieces)[i];
    return true;
  }

  /// The strategies that agree with the decisions: factors left open are sharded by the unused pieces in all ways.
  std::vector<Strategy> complete(const Operation& operation, const Strategy& base,
                                 const std::vector<char>& is_decided) {
    if (std::all_of(is_decided.begin(), is_decided.end(), [](char decided) { return decided != 0; })) return {base};
    std::vector<AxisRef> used, rest;
    for (const auto& axes : base.factors) used.insert(used.end(), axes.begin(), axes.end());
    for (const AxisRef& piece : pieces_) {
      if (is_free(piece, used)) rest.push_back(piece);
    }
    std::vector<Strategy> strategies;
    for (const Strategy& more : enumerate_strategies(operation, mesh_, rest, {}, uneven_).strategies) {
      Strategy strategy = base;
      bool fits = true;
      for (std::size_t factor = 0; factor < is_decided.size() && fits; ++factor) {
        if (is_decided[factor]) {
          fits = more.factors[factor].empty();
        } else {
          strategy.factors[factor] = more.factors[factor];
        }
      }
      if (fits && check_strategy(operation, strategy, mesh_).empty()) strategies.push_back(std::move(strategy));
    }
    return strategies;
  }

  void resolve_out(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    if (op.strategy->out.size() != op.results.size()) {
      fault(op.strategy->out_place,
            fmt::format("{}: out_strategy has {} {}, {} has {} result{}", op.name, op.strategy->out.size(),
                        op.strategy->out.size() == 1 ? "entry" : "entries", op.name, op.results.size(),
                        op.results.size() == 1 ? "" : "s"));
      return;
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const StrategyEntry& entry = op.strategy->out[i];
      if (entry.kind == StrategyEntry::Kind::kFollow) continue;
      const std::vector<Strategy>& strategies = result_.operators[id];
      std::optional<TensorLayout> natural;
      if (strategies.size() == 1) natural = result_layout(graph_.operation(id), strategies[0], mesh_, i);
      result_.requested[op.results[i]] =
          tensor_layout(entry, op.name, "out_strategy", graph_.tensor(op.results[i]), natural);
    }
  }

  void resolve_stored(TensorId id) {
    const GraphTensor& tensor = graph_.tensor(id);
    result_.stored[id] = tensor_layout(*tensor.layout, tensor.name, "strategy", tensor, std::nullopt);
  }

  /// The layout that an entry gives to one tensor. `natural` is the layout in which its operator leaves the tensor: a
  /// tuple with the same cuts means that layout; one that cuts a dimension further, by as much as the tensor is partial,
  /// means the reduce_scatter of it.
  std::optional<TensorLayout> tensor_layout(const StrategyEntry& entry, const std::string& owner, std::string_view what,
                                            const GraphTensor& tensor, const std::optional<TensorLayout>& natural) {
    const Shape& shape = tensor.type.shape;
    std::optional<TensorLayout> layout;
    switch (entry.kind) {
      case StrategyEntry::Kind::kFollow:
        return std::nullopt;
      case StrategyEntry::Kind::kLayout:
        layout = read_layout(entry, owner, tensor.name, shape);
        break;
      case StrategyEntry::Kind::kDataParallel: {
        layout = TensorLayout::replicated(shape.size());
        if (shape.empty()) break;
        if (!may_be_cut(shape[0], mesh_.num_devices())) {
          fault(
              entry.place,
              fmt::format("{}: data parallel (null) splits dimension 0 of {} into {}, but its size is {}{}", owner,
                          tensor.name, mesh_.num_devices(), shape[0], empty_pieces_text(shape[0], mesh_.num_devices())),
              "possible: " + divisors_text(shape[0]));
          return std::nullopt;
        }
        layout->dimensions[0].parts = {{0, all_axes(mesh_)}};
        break;
      }
      case StrategyEntry::Kind::kTuple:
        layout = tuple_layout(entry, owner, what, tensor, natural);
        break;
    }
    if (!layout) return std::nullopt;
    if (!layout->partial.empty()) {
      fault(entry.place, fmt::format("{}: {} cannot be asked for as partial", owner, tensor.name));
      return std::nullopt;
    }
    return canonical(*layout, mesh_, shape);
  }

  std::optional<TensorLayout> tuple_layout(const StrategyEntry& entry, const std::string& owner, std::string_view what,
                                           const GraphTensor& tensor, const std::optional<TensorLayout>& natural) {
    const Shape& shape = tensor.type.shape;
    if (entry.tuple.size() != shape.size()) {
      fault(entry.place,
            fmt::format("{}: {} has {} value{}, {} has {} dimension{}", owner, what, entry.tuple.size(),
                        entry.tuple.size() == 1 ? "" : "s", tensor.name, shape.size(), shape.size() == 1 ? "" : "s"));
      return std::nullopt;
    }
    if (!check_tuple(entry, owner, what, tensor.name, shape)) return std::nullopt;
    const std::int64_t product =
        std::accumulate(entry.tuple.begin(), entry.tuple.end(), std::int64_t{1}, std::multiplies<>());
    if (mesh_.num_devices() % product != 0) {
      fault(entry.place, fmt::format("{}: {} {} needs {} devices, there are {}", owner, what, tuple_text(entry.tuple),
                                     product, mesh_.num_devices()));
      return std::nullopt;
    }
    if (natural) {
      TensorLayout layout = *natural;
      std::vector<AxisRef> partial = std::move(layout.partial);
      layout.partial.clear();
      bool same = true;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        DimensionLayout& dimension = layout.dimensions[d];
        if (dimension.num_pieces() == entry.tuple[d]) continue;
        if (dimension.parts.size() == 1 && !partial.empty() &&
            dimension.num_pieces() * num_pieces(partial) == entry.tuple[d]) {
          dimension.parts[0].axes.insert(dimension.parts[0].axes.end(), partial.begin(), partial.end());
          partial.clear();
        } else {
          same = false;
        }
      }
      if (same) return layout;
    }
    const std::optional<std::vector<std::vector<AxisRef>>> pieces = split_ranks(mesh_, entry.tuple);
    if (!pieces) {
      fault(entry.place,
            fmt::format("{}: {} {} does not fit the mesh {}", owner, what, tuple_text(entry.tuple), mesh_.to_string()));
      return std::nullopt;
    }
    TensorLayout layout = TensorLayout::replicated(shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d) layout.dimensions[d].parts = {{0, (*pieces)[d]}};
    return layout;
  }

  const OperatorGraph& graph_;
  const DeviceMesh& mesh_;
  const std::vector<AxisRef>& pieces_;
  UnevenCuts uneven_;
  UserStrategies result_;
  std::vector<Diagnostic> faults_;
};

}  // namespace

UserStrategies resolve_user_strategies(const OperatorGraph& graph, const DeviceMesh& mesh,
                                       const std::vector<AxisRef>& pieces, UnevenCuts uneven) {
  return Resolver(graph, mesh, pieces, uneven).run();
}

}  // namespace shardplan
