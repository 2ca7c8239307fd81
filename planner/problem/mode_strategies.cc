#include "planner/problem/mode_strategies.h"

#include <algorithm>
#include <utility>

#include "graph/batch_factors.h"
#include "graph/stored_updates.h"
#include "graph/weights.h"
#include "layouts/uneven.h"
#include "strategies/data_parallel.h"
#include "strategies/parallel_optimizer.h"

// A mode decides forward operators one by one; everything else follows from layouts. Backward operators are visited
// in program order with the layout of every tensor known by then: a forward tensor, or the gradient of one, has the
// layout that the forward operator gives it; tensors in between have the layout in which the previous backward
// operator leaves them. An operator's factors take the axes of the dimensions they index, operands first. So one rule
// serves data parallelism and every user strategy, without knowledge of any operator's gradient.

namespace shardplan {
namespace {

using Layout = RareValue<TensorLayout>;

Layout without_partial(TensorLayout layout) {
  layout.partial.clear();
  return layout;
}

/// One operator's strategy, assembled from the layouts of its tensors.
class StrategyFromLayouts {
 public:
  StrategyFromLayouts(const Operation& operation, const DeviceMesh& mesh)
      : operation_(operation), mesh_(mesh), strategy_(replicated_strategy(operation)) {}

  /// Assigns the axes of `layout` to those factors of `walk` that have none yet, as far as that is legal.
  void take(const TensorWalk& walk, const TensorLayout& layout) {
    for (std::size_t d = 0; d < std::min(walk.size(), layout.dimensions.size()); ++d) {
      take_dimension(walk[d], layout.dimensions[d]);
    }
  }

  /// Lets partial `operands` pass through, if the operator can.
  void pass_partial(const std::vector<Layout>& operands) {
    const TensorLayout* partial = nullptr;
    for (const Layout& operand : operands) {
      if (operand && !operand->partial.empty()) partial = &*operand;
    }
    if (partial == nullptr || partial->reduction != Reduction::kSum) return;
    for (std::uint32_t group = 0; group < operation_.rule.linear.size(); ++group) {
      const std::vector<std::uint32_t>& members = operation_.rule.linear[group];
      bool fits = true;
      for (std::uint32_t i = 0; i < operands.size() && fits; ++i) {
        const bool is_member = std::find(members.begin(), members.end(), i) != members.end();
        const bool is_partial = operands[i] && !operands[i]->partial.empty();
        fits = is_member == is_partial && (!is_partial || operands[i]->partial == partial->partial);
      }
      if (!fits) continue;
      Strategy trial = strategy_;
      trial.partial = partial->partial;
      trial.group = group;
      trial.reduction = Reduction::kSum;
      if (!check_strategy(operation_, trial, mesh_).empty()) continue;
      strategy_ = std::move(trial);
      return;
    }
  }

  const Strategy& strategy() const { return strategy_; }

 private:
  void take_dimension(const DimensionWalk& walk, const DimensionLayout& layout) {
    if (walk.window) {
      if (layout.parts.size() == 1) cut(walk.window->output, layout.parts[0].axes);
    } else if (walk.factors.size() == layout.parts.size()) {
      for (std::size_t i = 0; i < walk.factors.size(); ++i) cut(walk.factors[i], layout.parts[i].axes);
    } else if (layout.parts.size() == 1) {
      // One list of axes on a product of factors: the major factor first, until it is used up.
      std::size_t at = 0;
      const std::vector<AxisRef>& axes = layout.parts[0].axes;
      for (const std::uint32_t factor : walk.factors) {
        std::vector<AxisRef> here;
        const std::int64_t size = operation_.rule.factors[factor].size;
        while (at < axes.size() && size % (num_pieces(here) * axes[at].size) == 0) here.push_back(axes[at++]);
        cut(factor, here);
        if (num_pieces(here) != size) break;
      }
    }
  }

  void cut(std::uint32_t factor, const std::vector<AxisRef>& axes) {
    if (axes.empty() || !strategy_.factors[factor].empty()) return;
    strategy_.factors[factor] = axes;
    if (!check_strategy(operation_, strategy_, mesh_).empty()) strategy_.factors[factor].clear();
  }

  const Operation& operation_;
  const DeviceMesh& mesh_;
  Strategy strategy_;
};

class ModeDecisions {
 public:
  ModeDecisions(UserStrategies& decided, const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                const std::vector<AxisRef>& pieces, std::vector<std::string>& notices)
      : decided_(decided),
        parallel_(model.parallel),
        gradient_dtype_(model.training ? model.training->gradient_dtype : std::nullopt),
        graph_(graph),
        mesh_(mesh),
        pieces_(pieces),
        notices_(notices),
        batch_(find_batch(graph).factors),
        is_by_mode_(graph.operators().size(), 0),
        natural_(graph.tensors().size()) {
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) whole_axes_.push_back(mesh.whole(axis));
  }

  IdVector<OperatorId, char> run() {
    const ParallelMode mode = parallel_.parallel_mode;
    if (mode == ParallelMode::kStandAlone) {
      for (const OperatorId op : graph_.operators().ids()) {
        decided_.operators[op] = {replicated_strategy(graph_.operation(op))};
      }
      return is_by_mode_;
    }
    follows_users_ = mode == ParallelMode::kDataParallel || mode == ParallelMode::kSemiAutoParallel;
    decide_forward();
    if (mode == ParallelMode::kDataParallel) check_any_batch();
    check_parameters();
    check_borders();
    if (!faults_.empty()) throw InputError(std::move(faults_));
    decide_stored();
    find_ways_to_parameters();
    bool accumulates = false;
    for (const OperatorId op : graph_.operators().ids()) accumulates |= graph_.operation(op).type->accumulates;
    if (parallel_.gradient_accumulation_shard && !accumulates) {
      notices_.push_back("gradient_accumulation_shard says nothing here: there are no micro-batches");
    }
    if (accumulates && !syncs_wide() && zero_stage() < 2 &&
        std::ranges::any_of(graph_.operators(),
                            [&](const auto& op) { return op.pass == Pass::kBackward && widens(op); })) {
      notices_.push_back(fmt::format(
          "gradient_fp32_sync: false reduces gradients with each of the {} micro-batches, as their sum is f32; without "
          "it the sum is reduced once",
          graph_.micro_batches()));
    }
    const bool cuts_states = parallel_.enable_parallel_optimizer || zero_stage() > 0;
    if (!cuts_states && std::ranges::any_of(graph_.tensors(), [](const GraphTensor& tensor) {
          return tensor.kind == TensorKind::kParameter && !tensor.parallel_optimizer;
        })) {
      notices_.push_back(
          "parallel_optimizer: false says nothing here: it is an exception from enable_parallel_optimizer and zero");
    }
    if (parallel_.gradient_fp32_sync && graph_.is_training() && !has_short_gradients()) {
      notices_.push_back("gradient_fp32_sync says nothing here: no gradient of a parameter has two bytes");
    }
    for (const OperatorId op : graph_.operators().ids()) {
      const GraphOperator& info = graph_.operators()[op];
      if (info.is_copy || !decided_.operators[op].empty()) continue;  // a copy has its original's strategy
      if (info.pass == Pass::kBackward) decide_backward(op);
      if (info.pass == Pass::kUpdate) decide_update(op);
    }
    IdVector<OperatorId, char> result(graph_.operators().size());
    for (const OperatorId op : graph_.operators().ids()) {
      const GraphOperator& info = graph_.operators()[op];
      result[op] = is_decided(info.is_copy ? *info.forward : op);
    }
    return result;
  }

 private:
  bool is_decided(OperatorId op) const {
    return is_by_mode_[op] || (follows_users_ && decided_.operators[op].size() == 1);
  }
  const Strategy& strategy(OperatorId op) const { return decided_.operators[op][0]; }

  void decide(OperatorId op, Strategy strategy) {
    const GraphOperator& info = graph_.operators()[op];
    is_by_mode_[op] = 1;
    for (std::size_t i = 0; i < info.results.size(); ++i) {
      natural_[info.results[i]] = result_layout(graph_.operation(op), strategy, mesh_, i);
    }
    decided_.operators[op] = {std::move(strategy)};
  }

  /// Whether a parameter that is trained, or its gradient by `gradient_dtype`, has less than the four bytes of f32.
  bool has_short_gradients() const {
    return gradient_dtype_ || std::ranges::any_of(graph_.tensors(), [](const GraphTensor& tensor) {
             if (tensor.kind != TensorKind::kParameter || !tensor.requires_grad) return false;
             const bool is_short = element_bytes(tensor.type.dtype) < element_bytes(DataType::kF32);
             return is_short || (tensor.pins && tensor.pins->gradient_dtype);
           });
  }

  // ---- forward ------------------------------------------------------------------------------------------------------

  void decide_forward() {
    for (const OperatorId op : graph_.operators().ids()) {
      const GraphOperator& info = graph_.operators()[op];
      if (info.pass != Pass::kForward || !info.is_data_parallel || !decided_.operators[op].empty()) continue;
      if (follows_users_ && batch_[op]) check_batch(info);
      decide(op,
             data_parallel_strategy(graph_.operation(op), batch_[op], mesh_, whole_axes_,
                                    parallel_.allows_uneven ? UnevenCuts::kWhereNothingElseFits : UnevenCuts::kNone));
    }
  }

  /// The devices must divide the batch of an input that the mode shards.
  void check_batch(const GraphOperator& op) {
    if (parallel_.full_batch) return;
    for (const TensorId operand : op.operands) {
      const GraphTensor& tensor = graph_.tensor(operand);
      if (tensor.kind != TensorKind::kInput || tensor.type.shape.empty() || tensor.layout) continue;
      const std::int64_t size = tensor.type.shape[0];
      if (size % mesh_.num_devices() == 0) continue;
      // The sum of the devices' means is defined for equal pieces only.
      const bool sums_means = parallel_.gradients_mean && !parallel_.gradients_mean->value;
      const bool may_be_uneven = parallel_.allows_uneven && !sums_means && wastes_little(size, mesh_.num_devices());
      if (may_be_uneven && can_be_split(size, mesh_.num_devices())) continue;
      refuse_batch(tensor);
    }
  }

  /// Inputs whose first dimension is 1 have no batch; if all are so, there is none to shard.
  void check_any_batch() {
    if (parallel_.full_batch || mesh_.num_devices() == 1) return;
    const GraphTensor* first = nullptr;
    for (const GraphTensor& tensor : graph_.tensors()) {
      if (tensor.kind != TensorKind::kInput || tensor.type.shape.empty()) continue;
      if (tensor.layout || tensor.type.shape[0] != 1) return;
      if (first == nullptr) first = &tensor;
    }
    if (first != nullptr) refuse_batch(*first);
  }

  void refuse_batch(const GraphTensor& tensor) {
    const std::int64_t size = tensor.type.shape[0];
    const std::int64_t devices = mesh_.num_devices();
    Diagnostic fault{
        tensor.place,
        fmt::format("{}: data parallelism splits dimension 0 into {}, but its size is {}", tensor.name, devices, size),
        "full_batch: true leaves it whole"};
    if (parallel_.parallel_mode == ParallelMode::kDataParallel) {
      const std::int64_t below = size / devices * devices;
      fault.hint = below == 0 ? fmt::format("possible sizes: {}, or fewer devices", devices)
                              : fmt::format("possible sizes: {} or {}, or fewer devices", below, below + devices);
    }
    const bool is_known = std::any_of(faults_.begin(), faults_.end(),
                                      [&](const Diagnostic& known) { return known.message == fault.message; });
    if (!is_known) faults_.push_back(std::move(fault));
  }

  // ---- what is stored -----------------------------------------------------------------------------------------------

  /// A parameter that the user's operators read in several layouts, which MindSpore refuses.
  void check_parameters() {
    for (const TensorId id : graph_.tensors().ids()) {
      const GraphTensor& tensor = graph_.tensor(id);
      if (tensor.kind != TensorKind::kParameter) continue;
      const Reader* first = nullptr;
      TensorLayout layout;
      for (const Reader& reader : tensor.readers) {
        const GraphOperator& op = graph_.operators()[reader.op];
        if (op.pass != Pass::kForward || op.strategy->in.empty() || decided_.operators[reader.op].size() != 1) continue;
        TensorLayout here = operand_layout(graph_.operation(reader.op), strategy(reader.op), mesh_, reader.operand);
        if (first == nullptr) {
          first = &reader;
          layout = std::move(here);
        } else if (here != layout) {
          report_conflict(tensor, graph_.operators()[first->op], layout, op, here);
          break;
        }
      }
    }
  }

  /// MindSpore 1.7 communicates only in the group of all devices: a sharded block shards one dimension, over all of
  /// them.
  void check_borders() {
    if (parallel_.compat.empty()) return;
    for (const OperatorId id : graph_.operators().ids()) {
      const GraphOperator& op = graph_.operators()[id];
      if (op.border_of.empty() || op.pass != Pass::kForward) continue;
      if (!op.strategy->in.empty() && decided_.operators[id].size() == 1) {
        check_border(op, operand_layout(graph_.operation(id), strategy(id), mesh_, 0), op.strategy->in_place);
      }
      const std::optional<TensorLayout>& requested = decided_.requested[op.results[0]];
      if (!op.strategy->out.empty() && requested) check_border(op, *requested, op.strategy->out_place);
    }
  }

  void check_border(const GraphOperator& op, const TensorLayout& layout, const SourcePlace& place) {
    for (const DimensionLayout& dimension : layout.dimensions) {
      if (dimension.num_pieces() == 1 || dimension.num_pieces() == mesh_.num_devices()) continue;
      faults_.push_back({place,
                         fmt::format("{}: compat: mindspore-1.7: shard cuts one dimension, over all {} devices, not {}",
                                     op.border_of, mesh_.num_devices(), to_string(layout, mesh_)),
                         ""});
      return;
    }
  }

  void report_conflict(const GraphTensor& parameter, const GraphOperator& first, const TensorLayout& first_layout,
                       const GraphOperator& second, const TensorLayout& second_layout) {
    const std::string what = fmt::format("{}: {} reads it as {}, but {} in line {} as {}", parameter.name, second.name,
                                         to_string(second_layout, mesh_), first.name, first.strategy->in_place.line,
                                         to_string(first_layout, mesh_));
    if (!parallel_.compat.empty()) {
      faults_.push_back({second.strategy->in_place, what, "MindSpore allows only one strategy per parameter"});
    } else {
      notices_.push_back(what + "; MindSpore refuses this, here it is redistributed");
    }
  }

  void decide_stored() {
    IdVector<TensorId, char> is_users(graph_.tensors().size(), 0);
    for (const TensorId id : graph_.tensors().ids()) {
      const GraphTensor& tensor = graph_.tensor(id);
      is_users[id] = decided_.stored[id].has_value();
      if (is_users[id]) continue;
      const bool is_input = tensor.kind == TensorKind::kInput;
      if (!is_input && tensor.kind != TensorKind::kParameter) continue;
      Layout layout;
      bool all_decided = true;
      for (const Reader& reader : tensor.readers) {
        if (graph_.operators()[reader.op].pass != Pass::kForward) continue;
        all_decided = all_decided && is_decided(reader.op) && (!is_input || is_by_mode_[reader.op]);
        if (!all_decided) break;
        if (!layout) {
          layout =
              without_partial(operand_layout(graph_.operation(reader.op), strategy(reader.op), mesh_, reader.operand));
        }
      }
      if (!all_decided || !layout) continue;
      if (parallel_.parallel_mode == ParallelMode::kDataParallel && !is_input && !tensor.layerwise_parallel &&
          !is_cache(graph_, id)) {
        layout = TensorLayout::replicated(tensor.type.shape.size());
      }
      if (check_uneven_layout(*layout, mesh_, tensor.type.shape).empty()) decided_.stored[id] = layout;
    }
    if (parallel_.enable_parallel_optimizer) {
      std::vector<TensorId> left;
      const auto states = parallel_optimizer_states(graph_, mesh_, pieces_, decided_.stored, &left);
      std::erase_if(left, [&](TensorId parameter) { return graph_.tensor(parameter).layerwise_parallel; });
      note_whole("enable_parallel_optimizer", left,
                 "dimension 0 of {} cannot be cut over all devices that hold the same");
      for (const TensorId id : graph_.tensors().ids()) {
        if (states[id] && !is_users[id]) decided_.stored[id] = states[id];
      }
    }
    updated_as_.resize(graph_.tensors().size());
    for (const OperatorId id : graph_.operators().ids()) {
      const GraphOperator& op = graph_.operators()[id];
      if (op.pass != Pass::kUpdate || !op.parameter || op.strategy->in.empty()) continue;
      updated_as_[*op.parameter] = operand_layout(graph_.operation(id), strategy(id), mesh_, 0);
    }
    if (zero_stage() > 0) cut_by_zero(is_users);
    for (const TensorId id : graph_.tensors().ids()) {
      const Layout& stored = decided_.stored[id];
      if (graph_.tensor(id).kind == TensorKind::kParameter && stored && num_shards(*stored) > 1) cut_casts(id, *stored);
    }
    // States are laid out like their parameters, except where the parallel optimizer shards them further.
    for (const TensorId id : graph_.tensors().ids()) {
      const GraphTensor& state = graph_.tensor(id);
      if (!state.state_of || !decided_.stored[*state.state_of]) continue;
      const bool has_its_shape = graph_.tensor(*state.state_of).type.shape == state.type.shape;
      if (!decided_.stored[id]) {
        decided_.stored[id] =
            has_its_shape ? update_layout(*state.state_of) : TensorLayout::replicated(state.type.shape.size());
      }
      if (has_its_shape) updated_as_[*state.state_of] = decided_.stored[id];
    }
  }

  std::int64_t zero_stage() const { return parallel_.zero ? parallel_.zero->value : 0; }

  /// Frozen weights have no update, but stage 3 cuts all weights.
  std::optional<TensorId> frozen_weight(OperatorId id) const {
    const GraphOperator& op = graph_.operators()[id];
    const OperatorType& type = *graph_.operation(id).type;
    const bool reads_weights = type.work == WorkKind::kContraction || type.role == OperatorRole::kLookup;
    if (zero_stage() < 3 || op.pass != Pass::kForward || !reads_weights) return std::nullopt;
    for (const TensorId operand : op.operands) {
      const std::optional<TensorId> weight = stored_weight(graph_, operand);
      if (weight && !graph_.tensor(*weight).requires_grad && !is_cache(graph_, *weight)) return weight;
    }
    return std::nullopt;
  }

  /// Each device casts its piece of a weight, so that what is gathered has the type that products read.
  void cut_casts(TensorId id, const TensorLayout& layout) {
    for (const Reader& reader : graph_.tensor(id).readers) {
      const Operation& operation = graph_.operation(reader.op);
      if (!is_by_mode_[reader.op] || operation.type->role != OperatorRole::kConversion) continue;
      StrategyFromLayouts found(operation, mesh_);
      found.take(operation.rule.operands[0], layout);
      decide(reader.op, found.strategy());
      const TensorId cast = graph_.operators()[reader.op].results[0];
      cut_casts(cast, *natural_[cast]);
    }
  }

  void cut_by_zero(const IdVector<TensorId, char>& is_users) {
    std::vector<TensorId> left;
    IdVector<TensorId, char> is_seen(graph_.tensors().size(), 0);
    for (const OperatorId at : graph_.operators().ids()) {
      const GraphOperator& op = graph_.operators()[at];
      std::optional<TensorId> id = frozen_weight(at);
      if (op.pass == Pass::kUpdate && op.parameter) id = *op.parameter;
      if (!id || std::exchange(is_seen[*id], 1) != 0) continue;
      const GraphTensor& parameter = graph_.tensor(*id);
      Layout& stored = decided_.stored[*id];
      if (!stored || parameter.layerwise_parallel || !parameter.parallel_optimizer) continue;
      const Layout cut = zero_layout(*stored, parameter.type.shape, mesh_, pieces_, parallel_.allows_uneven);
      if (!cut) {
        left.push_back(*id);
        continue;
      }
      if (!updated_as_[*id]) updated_as_[*id] = cut;
      if (zero_stage() == 3 && !is_users[*id]) stored = cut;
    }
    note_whole("zero", left, "no dimensions of {} can be cut over the devices that hold the same");
  }

  /// A notice about parameters that the key cannot cut; `reason` takes the shape of the first.
  void note_whole(const char* key, const std::vector<TensorId>& left, fmt::format_string<const std::string&> reason) {
    if (left.empty()) return;
    const GraphTensor& first = graph_.tensor(left[0]);
    const std::string others = left.size() > 1 ? fmt::format(" and {} more stay", left.size() - 1) : " stays";
    const std::string shape = to_string(first.type.shape);
    notices_.push_back(fmt::format("{}: {}{} whole: {}", key, first.name, others, fmt::format(reason, shape)));
  }

  // ---- backward -----------------------------------------------------------------------------------------------------

  /// Marks the tensors from which only gradients of parameters are computed.
  void find_ways_to_parameters() {
    leads_to_parameters_.resize(graph_.tensors().size(), 0);
    for (std::size_t i = graph_.operators().size(); i-- > 0;) {
      for (const TensorId id : graph_.operators()[OperatorId(i)].results) {
        const GraphTensor& tensor = graph_.tensor(id);
        bool leads = tensor.gradient_of.has_value() ||
                     (tensor.gradient_for && graph_.tensor(*tensor.gradient_for).kind == TensorKind::kParameter);
        if (!leads && !tensor.readers.empty() && !tensor.is_output) {
          leads = std::all_of(tensor.readers.begin(), tensor.readers.end(), [&](const Reader& reader) {
            const std::vector<TensorId>& results = graph_.operators()[reader.op].results;
            return std::all_of(results.begin(), results.end(), [&](TensorId r) { return leads_to_parameters_[r]; });
          });
        }
        leads_to_parameters_[id] = leads;
      }
    }
  }

  /// A tensor's layout for the forward operator: its own, or that of the tensor whose gradient it is.
  Layout layout_for(OperatorId forward, TensorId id) const {
    const GraphOperator& op = graph_.operators()[forward];
    const Operation& operation = graph_.operation(forward);
    const auto find = [&](TensorId tensor) -> Layout {
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (op.operands[i] == tensor) return without_partial(operand_layout(operation, strategy(forward), mesh_, i));
      }
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        if (op.results[i] == tensor) return without_partial(result_layout(operation, strategy(forward), mesh_, i));
      }
      return std::nullopt;
    };
    const GraphTensor& tensor = graph_.tensor(id);
    if (tensor.producer && graph_.operators()[*tensor.producer].is_copy) {
      const GraphOperator& copy = graph_.operators()[*tensor.producer];
      return find(graph_.operators()[*copy.forward].results[tensor.result]);
    }
    if (tensor.gradient_for && graph_.tensor(*tensor.gradient_for).type.shape == tensor.type.shape) {
      if (Layout layout = find(*tensor.gradient_for)) return layout;
    }
    if (Layout layout = find(id)) return layout;
    // A gradient that an addition passes on unchanged belongs to the addition's result, but also to this operator's.
    for (std::size_t i = 0; tensor.gradient_for && i < op.results.size(); ++i) {
      if (graph_.tensor(op.results[i]).type.shape == tensor.type.shape) return find(op.results[i]);
    }
    return std::nullopt;
  }

  void decide_backward(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    if (op.forward && !is_decided(*op.forward)) return;
    if (!op.forward && !std::all_of(op.operands.begin(), op.operands.end(), [&](TensorId t) {
          return natural_[t] || graph_.tensor(t).kind == TensorKind::kConstant;
        })) {
      return;
    }
    // The gradient of a cast weight is reduced in the weight's own type, unless asked for otherwise.
    const bool is_of_cast = op.forward && is_cast_parameter(graph_, graph_.operators()[*op.forward].results[0]);
    const bool lies_as_forward = op.forward && !(is_of_cast && syncs_wide());
    StrategyFromLayouts found(operation, mesh_);
    const Layout summed_in = layout_of_sum(id);
    if (summed_in) found.take(operation.rule.results[0], *summed_in);
    std::vector<Layout> operands;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const TensorId operand = op.operands[i];
      operands.push_back(natural_[operand]);
      Layout layout = lies_as_forward ? layout_for(*op.forward, operand) : std::nullopt;
      if (!layout) layout = natural_[operand];
      if (layout) found.take(operation.rule.operands[i], *layout);
    }
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const Layout layout = lies_as_forward ? layout_for(*op.forward, op.results[i]) : std::nullopt;
      if (layout) found.take(operation.rule.results[i], *layout);
    }
    const bool leads_to_parameters = std::all_of(op.results.begin(), op.results.end(),
                                                 [&](TensorId result) { return leads_to_parameters_[result]; });
    const bool is_sum = leads_to_parameters || operation.type->accumulates;  // of the loss: once per step
    if (!summed_in && is_sum && (!widens(op) || syncs_wide())) found.pass_partial(operands);
    decide(id, found.strategy());
  }

  /// Where a gradient is reduced before its update: one that becomes f32 afterwards, in the layout of its update; and
  /// that of a parameter that is stored sharded (ZeRO-3) with every micro-batch, since no device has room for the
  /// complete sum.
  Layout layout_of_sum(OperatorId id) const {
    const GraphOperator& op = graph_.operators()[id];
    if (!op.parameter || op.forward) return std::nullopt;
    const Layout& gradient = natural_[op.operands[0]];
    if (!gradient || gradient->partial.empty()) return std::nullopt;
    const Layout& stored = decided_.stored[*op.parameter];
    const bool is_stored_in_pieces = stored && *stored != without_partial(*gradient);
    const std::optional<Placed<bool>>& shards = parallel_.gradient_accumulation_shard;
    const bool is_in_pieces = shards ? shards->value : is_stored_in_pieces || zero_stage() >= 2;
    if (is_in_pieces && graph_.operation(id).type->accumulates) {
      return is_stored_in_pieces && zero_stage() == 0 ? stored : update_layout(*op.parameter);
    }
    return widens(op) && !syncs_wide() ? update_layout(*op.parameter) : std::nullopt;
  }

  bool syncs_wide() const { return !parallel_.gradient_fp32_sync || parallel_.gradient_fp32_sync->value; }
  /// True for the operator that converts a two-byte gradient to f32.
  bool widens(const GraphOperator& op) const {
    const auto bytes = [&](TensorId id) { return element_bytes(graph_.tensor(id).type.dtype); };
    return !op.forward && bytes(op.results[0]) > bytes(op.operands[0]);
  }

  // ---- update -------------------------------------------------------------------------------------------------------

  void decide_update(OperatorId id) {
    const GraphOperator& op = graph_.operators()[id];
    const Operation& operation = graph_.operation(id);
    if (!op.parameter) {
      // Clipping: norms of all gradients. With the parallel optimizer they are searched.
      const bool cuts_states = parallel_.enable_parallel_optimizer || zero_stage() > 0;
      if (follows_users_ && !cuts_states) decide(id, replicated_strategy(operation));
      return;
    }
    const Layout layout = update_layout(*op.parameter);
    if (!layout) return;
    const Shape& shape = graph_.tensor(*op.parameter).type.shape;
    StrategyFromLayouts found(operation, mesh_);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (graph_.tensor(op.operands[i]).type.shape == shape) found.take(operation.rule.operands[i], *layout);
    }
    decide(id, found.strategy());
  }

  /// The layout in which a parameter is updated: that of its states, or the stored one.
  Layout update_layout(TensorId parameter) const {
    return updated_as_[parameter] ? updated_as_[parameter] : decided_.stored[parameter];
  }

  UserStrategies& decided_;
  const ParallelOptions& parallel_;
  const std::optional<DataType> gradient_dtype_;  // of all parameters
  const OperatorGraph& graph_;
  const DeviceMesh& mesh_;
  const std::vector<AxisRef>& pieces_;
  std::vector<AxisRef> whole_axes_;
  std::vector<std::string>& notices_;
  std::vector<Diagnostic> faults_;
  bool follows_users_ = false;  // consequences of the user's decisions are derived too
  IdVector<OperatorId, std::optional<std::uint32_t>> batch_;
  IdVector<OperatorId, char> is_by_mode_;  // decided here
  IdVector<TensorId, Layout> natural_;     // as left by the operator decided here
  IdVector<TensorId, Layout> updated_as_;  // by parameter: the layout of its states
  IdVector<TensorId, char> leads_to_parameters_;
};

}  // namespace

IdVector<OperatorId, char> decide_by_mode(UserStrategies& decided, const Model& model, const OperatorGraph& graph,
                                          const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                          std::vector<std::string>& notices) {
  return ModeDecisions(decided, model, graph, mesh, pieces, notices).run();
}

}  // namespace shardplan
