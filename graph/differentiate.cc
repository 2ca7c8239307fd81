#include "graph/differentiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/name_table.h"
#include "graph/row_updates.h"
#include "graph/stored_updates.h"
#include "operators/per_device.h"

// Reverse-mode differentiation, one operator at a time: the forward operators are visited in reverse, and each
// operator's gradient function turns the gradients of its results into those of its operands. The contributions of a
// tensor's readers are added up when its producer is visited. A parameter's gradient is finished (accumulated over
// micro-batches, cast to f32) as soon as its first reader has been visited, so that it is not held in two forms.
// Nothing is computed for tensors that depend on no trained parameter.

namespace shardplan {
namespace {

/// Adds backward and update operators after the forward ones.
class Differentiation : public GradientBuilder {
 public:
  Differentiation(const OperatorGraph& forward, const TrainingOptions& options)
      : forward_(forward), options_(options), builder_(forward) {}

  OperatorGraph run() {
    check_loss();
    find_needed();
    gradients_.resize(forward_.tensors().size());
    if (options_.micro_batches > 1) accumulate_loss();
    gradients_[*forward_.loss()] = {constant(1.0)};
    finished_.resize(forward_.tensors().size());
    for (std::size_t i = forward_.operators().size(); i-- > 0;) {
      differentiate_operator(OperatorId(i));
      for (const TensorId operand : forward_.operators()[OperatorId(i)].operands) {
        if (forward_.tensor(operand).readers.front().op == OperatorId(i)) finish_gradient(operand);
      }
    }
    exchange_joined();
    update_parameters();
    mark_stored_updates(forward_, builder_, true);
    builder_.set_training(options_.micro_batches);
    names_ = {};
    positions_ = {};
    last_numbers_ = {};
    return builder_.build();
  }

  // ---- GradientBuilder

  std::vector<TensorId> add(std::string_view type_name, const Attributes& attributes,
                            const std::vector<TensorId>& operands) override {
    GraphOperator op;
    op.pass = pass_;
    op.forward = current_;
    op.operands = operands;
    if (current_) {
      const GraphOperator& forward = forward_.operators()[*current_];
      op.name = unique(fmt::format("grad.{}.{}", forward.name, type_name));
      op.scope = forward.scope;
      op.place = forward.place;
      op.worker = forward.worker;
      op.is_placed = forward.is_placed;
    } else {
      op.parameter = parameter_;
      if (const auto& beside = parameter_ ? parameter_ : squared_) op.worker = home_of(*beside);
      op.name = unique(fmt::format("{}.{}", update_name_, type_name));
    }
    const OperatorType* found = find_graph_operator_type(type_name);
    SHARDPLAN_CHECK(found != nullptr);
    std::vector<TensorType> types;
    for (const TensorId operand : operands) types.push_back(type(operand));
    op.operation = operation_of(*found, attributes, std::move(types));
    const std::size_t num_results = builder_.operation(op.operation).results.size();
    std::vector<std::string> result_names;
    for (std::size_t i = 0; num_results > 1 && i < num_results; ++i) {
      result_names.push_back(fmt::format("{}.{}", op.name, i));
    }
    const OperatorId id = builder_.add_operator(std::move(op), std::move(result_names));
    return builder_.op(id).results;
  }

  TensorId constant(double value) override {
    // Named after the operator that asks, not the value: at other sizes the same graph has other values.
    return constant(value, current_type(),
                    current_ ? fmt::format("grad.{}.constant", forward_.operators()[*current_].name) : "grad.one");
  }

  TensorType type(TensorId tensor) const override { return builder_.tensor(tensor).type; }

 private:
  struct AddedOperation {
    Attributes attributes;  // as requested: without defaults
    std::vector<TensorType> types;
    OperationId id;
  };
  /// Maximal number of operations per type that are looked up; others are built again, and `intern` finds equal ones.
  static constexpr std::size_t kMostKnown = 32;

  /// Shapes and rules are inferred once for all copies of a layer.
  OperationId operation_of(const OperatorType& type, const Attributes& attributes, std::vector<TensorType> types) {
    std::vector<AddedOperation>& known = operations_[&type];
    for (const AddedOperation& operation : known) {
      if (operation.types == types && operation.attributes == attributes) return operation.id;
    }
    const OperationId id = builder_.intern(make_operation(type, attributes, types));
    if (known.size() < kMostKnown) known.push_back({attributes, std::move(types), id});
    return id;
  }

  /// Gradients that one collective sums over the devices.
  struct Joined {
    std::vector<TensorId> parameters;
    std::vector<TensorId> gradients;
    OperatorId behind{0};  // the next operator when the last gradient was added
  };
  struct Trained {
    TensorId parameter;
    TensorId gradient;                     // of the parameter, or of its rows
    std::optional<TensorId> indices = {};  // which rows these are; nothing: all
  };
  struct Rows {
    TensorId indices, gradient;
  };

  TensorId constant(double value, DataType dtype, const std::string& name) {
    GraphTensor tensor;
    tensor.name = unique(name);
    tensor.type = {{}, dtype};
    tensor.kind = TensorKind::kConstant;
    tensor.fill.value = value;
    return builder_.add_tensor(std::move(tensor));
  }

  /// The type in which the current operator computes; before the first operator, that of the loss.
  DataType current_type() const {
    const TensorId tensor = current_ ? forward_.operators()[*current_].results[0] : *forward_.loss();
    const DataType dtype = forward_.tensor(tensor).type.dtype;
    return is_floating(dtype) ? dtype : DataType::kF32;
  }

  void check_loss() const {
    if (!forward_.loss()) throw InputError(options_.place, "training needs a loss: name a scalar result as 'loss'");
    const GraphTensor& loss = forward_.tensor(*forward_.loss());
    if (!loss.type.shape.empty()) {
      throw InputError(loss.place, "loss {} has {} dimensions; expected a scalar", loss.name, loss.type.shape.size());
    }
  }

  /// Marks the tensors that depend on a trained parameter.
  void find_needed() {
    needed_.resize(forward_.tensors().size(), 0);
    for (const TensorId id : forward_.tensors().ids()) {
      const GraphTensor& tensor = forward_.tensor(id);
      needed_[id] = tensor.kind == TensorKind::kParameter && tensor.requires_grad && is_floating(tensor.type.dtype);
    }
    for (const OperatorId id : forward_.operators().ids()) {
      if (forward_.operation(id).type->stops_gradient) continue;
      const GraphOperator& op = forward_.operators()[id];
      bool any = false;
      for (const TensorId operand : op.operands) any = any || needed_[operand];
      for (const TensorId result : op.results) {
        needed_[result] = any && is_floating(forward_.tensor(result).type.dtype);
      }
    }
  }

  /// The sum of the contributions of the readers; nothing if there are none.
  std::optional<TensorId> total(TensorId tensor) {
    std::vector<TensorId>& parts = gradients_[tensor];
    if (parts.empty()) return std::nullopt;
    if (parts.size() > 1) parts = {add("AddN", {}, parts)[0]};
    return parts[0];
  }

  /// The loss of a step is the mean over its micro-batches.
  void accumulate_loss() {
    for (const GraphTensor& tensor : forward_.tensors()) {
      if (!tensor.is_output || tensor.name == forward_.tensor(*forward_.loss()).name) continue;
      throw InputError(tensor.place, "{}: with micro_batches only the loss can be an output of the model", tensor.name);
    }
    const GraphTensor loss = forward_.tensor(*forward_.loss());
    update_name_ = "mean." + loss.name;
    const TensorId mean = accumulated(*forward_.loss(), loss.type.dtype);
    builder_.tensor(*forward_.loss()).is_output = false;
    builder_.tensor(mean).is_output = true;
    builder_.set_loss(mean);
  }

  TensorId accumulated(TensorId tensor, DataType dtype) {
    return add("Accumulate", {{"dtype", std::string(to_string(dtype))}, {"count", options_.micro_batches}},
               {tensor})[0];
  }

  /// A gradient, or the square of its norm, summed over all devices, as MindSpore's DistributedGradReducer does.
  TensorId exchanged(TensorId gradient) {
    return add("AllReduce", {{"reduce", std::string("sum")}, {"rank_size", *options_.exchanged_over}}, {gradient})[0];
  }

  /// Sums the gradients of each fusion id and type together, in the place where the last of them was added.
  void exchange_joined() {
    current_ = std::nullopt;
    for (auto& [key, joined] : joined_) {
      const auto& [id, dtype] = key;
      parameter_ = joined.parameters[0];
      update_name_ = fmt::format("comm_fusion.{}", id);
      const std::vector<TensorId> sums = add("FusedAllReduce",
                                             {{"reduce", std::string("sum")},
                                              {"rank_size", *options_.exchanged_over},
                                              {"fusion", static_cast<std::int64_t>(id)}},
                                             joined.gradients);
      builder_.place_before(*builder_.tensor(sums[0]).producer, joined.behind);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        builder_.tensor(sums[i]).gradient_of = joined.parameters[i];
        builder_.tensor(joined.parameters[i]).comm_fusion.reset();  // its fusion is done
        finished_[joined.parameters[i]] = sums[i];
      }
    }
    parameter_ = std::nullopt;
  }

  /// Turns the sums into means. With the updates: right after a sum it would make the kernels wait for the sum.
  void average(std::vector<Trained>& trained) {
    const double part = 1.0 / static_cast<double>(*options_.exchanged_over);
    for (Trained& item : trained) {
      const GraphTensor& tensor = forward_.tensor(item.parameter);
      if (options_.not_exchanged.contains(tensor.name)) continue;
      update_name_ = "mean." + tensor.name;
      parameter_ = item.parameter;
      item.gradient =
          add("Mul", {}, {item.gradient, constant(part, type(item.gradient).dtype, update_name_ + ".part")})[0];
      builder_.tensor(item.gradient).gradient_of = item.parameter;
    }
    parameter_ = std::nullopt;
  }

  void differentiate_operator(OperatorId id) {
    const GraphOperator& op = forward_.operators()[id];
    current_ = id;
    bool any = false;
    std::vector<std::optional<TensorId>> result_gradients;
    std::vector<bool> needed;
    for (const TensorId result : op.results) {
      result_gradients.push_back(needed_[result] || forward_.loss() == result ? total(result) : std::nullopt);
      any = any || result_gradients.back().has_value();
      if (result_gradients.back()) set_gradient_for(*result_gradients.back(), result);
    }
    bool any_needed = false;
    for (const TensorId operand : op.operands) {
      needed.push_back(needed_[operand]);
      any_needed = any_needed || needed.back();
    }
    if (!any || !any_needed) return;
    const Operation& operation = forward_.operation(id);
    if (operation.type->updates_rows && needed[0]) {
      if (forward_.tensor(op.operands[0]).kind == TensorKind::kParameter) {
        rows_[op.operands[0]] = Rows{op.operands[1], *result_gradients[0]};
        check_row_updates(forward_, op, options_);
        return;
      }
      throw InputError(op.place, "{}: {} looks up {}, which is computed; expected a parameter, or a lookup by Gather",
                       op.name, operation.type->name, forward_.tensor(op.operands[0]).name);
    }
    if (operation.type->gradient == nullptr) {
      throw InputError(op.place, "{}: {} has no gradient, but lies between the loss and trained parameters", op.name,
                       operation.type->name);
    }
    std::vector<std::optional<TensorId>> found;
    try {
      found = operation.type->gradient(*this, {operation, op.operands, op.results, result_gradients, needed});
    } catch (const InputError& error) {
      throw InputError(op.place, "{}: its gradient: {}", op.name, error.diagnostics()[0].message);
    }
    SHARDPLAN_CHECK(found.size() == op.operands.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i] || !needed[i]) continue;
      SHARDPLAN_CHECK(type(*found[i]).shape == type(op.operands[i]).shape);
      // The result of operands of several types is as wide as the widest, and so is its gradient. Products in f8 have
      // wider gradients.
      const DataType own = type(op.operands[i]).dtype;
      if (is_floating(type(*found[i]).dtype) && element_bytes(own) > 1) found[i] = as_type(*found[i], own);
      set_gradient_for(*found[i], op.operands[i]);
      gradients_[op.operands[i]].push_back(*found[i]);
    }
  }

  /// A gradient that is passed on unchanged keeps the first tensor it was set for, the later one in the graph.
  void set_gradient_for(TensorId gradient, TensorId tensor) {
    OptionalIndex<TensorId>& of = builder_.tensor(gradient).gradient_for;
    if (!of) of = tensor;
  }

  /// A parameter's gradient as its update reads it, made as soon as all readers of the parameter have contributed.
  void finish_gradient(TensorId id) {
    const GraphTensor& tensor = forward_.tensor(id);
    if (tensor.kind != TensorKind::kParameter || !needed_[id] || gradients_[id].empty() || finished_[id]) return;
    current_ = std::nullopt;
    parameter_ = id;
    update_name_ = "grad." + tensor.name;
    TensorId gradient = *total(id);
    builder_.tensor(gradient).gradient_of = id;
    const DataType dtype = gradient_dtype(id);
    if (options_.micro_batches == 1 || options_.widens_before_sum) gradient = as_type(gradient, dtype);
    if (options_.micro_batches > 1) gradient = accumulated(gradient, dtype);
    if (options_.micro_batches == 1) gradient = of_means(id, gradient);
    if (tensor.pins && tensor.pins->gradient_strategy) gradient = pinned(id, gradient);
    if (options_.exchanged_over && !options_.not_exchanged.contains(tensor.name)) {
      parameter_ = id;
      if (tensor.comm_fusion.value_or(0) > 0) {
        Joined& joined = joined_[{*tensor.comm_fusion, type(gradient).dtype}];
        joined.parameters.push_back(id);
        joined.gradients.push_back(gradient);
        joined.behind = OperatorId(builder_.num_operators());
      } else {
        gradient = exchanged(gradient);
      }
    }
    builder_.tensor(gradient).gradient_of = id;
    finished_[id] = gradient;
    parameter_ = std::nullopt;
  }

  /// The type in which a parameter's gradient is summed and held for the update.
  DataType gradient_dtype(TensorId parameter) const {
    const GraphTensor& tensor = forward_.tensor(parameter);
    if (tensor.pins && tensor.pins->gradient_dtype) return *tensor.pins->gradient_dtype;
    if (options_.gradient_dtype) return *options_.gradient_dtype;
    return tensor.type.dtype == DataType::kF64 ? DataType::kF64 : DataType::kF32;
  }

  /// Gives a gradient the user's layout: on its sum over micro-batches or, without micro-batches, on an additional
  /// Identity.
  TensorId pinned(TensorId parameter, TensorId gradient) {
    parameter_ = parameter;
    if (options_.micro_batches == 1) gradient = add("Identity", {}, {gradient})[0];
    const GraphTensor& tensor = forward_.tensor(parameter);
    give_layout(builder_.op(*builder_.tensor(gradient).producer), *tensor.pins->gradient_strategy,
                tensor.name + ": gradient_strategy");
    return gradient;
  }

  /// Gives the first operand this layout; the layouts of the other operands follow.
  static void give_layout(GraphOperator& op, const StrategyEntry& entry, std::string owner) {
    op.strategy.edit().in.assign(op.operands.size(), StrategyEntry{});
    op.strategy.edit().in[0] = entry;
    op.strategy.edit().in_place = entry.place;
    op.strategy.edit().owner = std::move(owner);
  }

  /// Scales a parameter's gradient if the loss is the mean of several devices' losses: to the gradient of their sum if
  /// the user asks for that, or of one device's own loss if every device has its own values of the parameter.
  TensorId of_means(TensorId parameter, TensorId gradient) {
    const GraphTensor& tensor = forward_.tensor(parameter);
    const std::optional<std::int64_t> times =
        tensor.layerwise_parallel ? std::optional(tensor.type.shape[0]) : options_.summed_means;
    if (!times) return gradient;
    parameter_ = parameter;
    update_name_ = "grad." + tensor.name;
    const auto means = static_cast<double>(*times);
    gradient = add("Mul", {}, {gradient, constant(means, type(gradient).dtype, update_name_ + ".devices")})[0];
    builder_.tensor(gradient).gradient_of = parameter;
    parameter_ = std::nullopt;
    return gradient;
  }

  // ---- updates

  /// The worker that stores a parameter: that of its first reader.
  int home_of(TensorId parameter) const {
    return forward_.operators()[forward_.tensor(parameter).readers.front().op].worker;
  }

  void update_parameters() {
    std::vector<Trained> trained;
    for (const TensorId id : forward_.tensors().ids()) {
      if (finished_[id]) trained.push_back({id, *finished_[id]});
      if (const auto rows = rows_.find(id); rows != rows_.end()) {
        trained.push_back({id, rows->second.gradient, rows->second.indices});
      }
    }
    current_ = std::nullopt;
    if (trained.empty()) {
      throw InputError(options_.place, "training: the loss depends on no trained parameter");
    }
    if (!options_.master_copy && std::ranges::none_of(trained, [&](const Trained& item) {
          return element_bytes(type(item.parameter).dtype) < element_bytes(DataType::kF32);
        })) {
      throw InputError(
          options_.place,
          "training: master_copy is of parameters of two bytes, and none is trained; mixed_precision: bf16 "
          "makes them so");
    }
    pass_ = Pass::kUpdate;
    // Sums over the micro-batches are complete after the last micro-batch.
    for (Trained& item : trained) {
      if (options_.micro_batches > 1) item.gradient = of_means(item.parameter, item.gradient);
    }
    if (options_.exchanged_over && options_.exchanges_means) average(trained);
    if (options_.clip_norm > 0) clip(trained);
    for (const Trained& item : trained) update(item);
  }

  /// Scales all gradients by min(1, clip_norm / norm of all). Devices that have parts of their own add up what is
  /// theirs, each piece once, so that all of them scale by the same number.
  void clip(std::vector<Trained>& trained) {
    update_name_ = "clip";
    // Gradients of several types share one norm, in the widest of the types; f32 for two types of one width.
    DataType of_norm = type(trained[0].gradient).dtype;
    for (const Trained& item : trained) {
      const DataType own = type(item.gradient).dtype;
      if (own == of_norm || element_bytes(own) < element_bytes(of_norm)) continue;
      of_norm = element_bytes(own) > element_bytes(of_norm) ? own : DataType::kF32;
    }
    std::vector<TensorId> squares;
    std::vector<TensorId> own;  // of what other devices have in other pieces
    for (const Trained& item : trained) {
      squared_ = item.parameter;
      const TensorId square = as_type(add("SquareSum", {}, {item.gradient})[0], of_norm);
      const auto holders = options_.piece_holders.find(forward_.tensor(item.parameter).name);
      if (holders == options_.piece_holders.end()) {
        squares.push_back(square);
      } else if (holders->second == 1) {
        own.push_back(square);
      } else {
        const TensorId part = constant(1.0 / static_cast<double>(holders->second), of_norm, "clip.part");
        own.push_back(add("Mul", {}, {square, part})[0]);
      }
    }
    squared_ = std::nullopt;
    if (!options_.piece_holders.empty()) {
      if (own.empty()) own.push_back(constant(0, of_norm, "clip.none"));
      squares.push_back(exchanged(own.size() == 1 ? own[0] : add("AddN", {}, own)[0]));
      builder_.op(*builder_.tensor(squares.back()).producer).place = options_.place;
    }
    const TensorId sum = squares.size() == 1 ? squares[0] : add("AddN", {}, squares)[0];
    const TensorId scale = add("ClipScale", {{"clip_norm", options_.clip_norm}}, {sum})[0];
    for (Trained& item : trained) {
      const std::string name = forward_.tensor(item.parameter).name;
      update_name_ = "clip." + name;
      parameter_ = item.parameter;
      item.gradient = add("Mul", {}, {item.gradient, as_type(scale, type(item.gradient).dtype)})[0];
      builder_.tensor(item.gradient).gradient_of = item.parameter;
    }
    parameter_ = std::nullopt;
  }

  TensorId as_type(TensorId tensor, DataType dtype) {
    if (type(tensor).dtype == dtype) return tensor;
    return add("Cast", {{"dtype", std::string(to_string(dtype))}}, {tensor})[0];
  }

  TensorId state(TensorId parameter, const char* name, const Shape& shape, DataType dtype,
                 bool is_master_copy = false) {
    GraphTensor tensor;
    tensor.name = unique(fmt::format("{}.{}", forward_.tensor(parameter).name, name));
    tensor.type = {shape, dtype};
    tensor.kind = TensorKind::kState;
    tensor.state_of = parameter;
    tensor.is_master_copy = is_master_copy;
    return builder_.add_tensor(std::move(tensor));
  }

  void update(const Trained& item) {
    const GraphTensor parameter = forward_.tensor(item.parameter);
    const Shape& shape = parameter.type.shape;
    update_name_ = "update." + parameter.name;
    const bool is_wide = parameter.type.dtype == DataType::kF32 || parameter.type.dtype == DataType::kF64;
    const bool is_mixed = !is_wide && options_.master_copy;
    parameter_ = item.parameter;
    const TensorId weight = is_mixed ? state(item.parameter, "master", shape, DataType::kF32, true) : item.parameter;
    std::vector<TensorId> stored{weight};
    std::vector<TensorId> operands{weight};
    std::string type_name;
    Attributes attributes{{"learning_rate", options_.learning_rate}};
    const DataType moment = parameter.pins && parameter.pins->state_dtype
                                ? *parameter.pins->state_dtype
                                : options_.state_dtype.value_or(DataType::kF32);
    const auto add_state = [&](const char* name, const Shape& state_shape, DataType dtype) {
      stored.push_back(state(item.parameter, name, state_shape, dtype));
      operands.push_back(stored.back());
    };
    if (options_.optimizer == "sgd") {
      type_name = "ApplyGradientDescent";
      attributes["weight_decay"] = options_.weight_decay;
    } else if (options_.optimizer == "momentum") {
      type_name = "ApplyMomentum";
      attributes["momentum"] = options_.momentum;
      attributes["weight_decay"] = options_.weight_decay;
      add_state("momentum", shape, moment);
    } else if (options_.optimizer == "adam" || options_.optimizer == "adamw") {
      type_name = options_.optimizer == "adam" ? "ApplyAdam" : "ApplyAdamW";
      attributes["beta1"] = options_.beta1;
      attributes["beta2"] = options_.beta2;
      attributes["eps"] = options_.eps;
      attributes["weight_decay"] = options_.weight_decay;
      add_state("moment1", shape, moment);
      add_state("moment2", shape, moment);
      add_state("step", {}, DataType::kF32);
    } else {
      throw InputError(options_.place, "training: no optimizer '{}'; expected sgd, momentum, adam or adamw",
                       options_.optimizer);
    }
    if (item.indices) {
      type_name = "Sparse" + type_name;
      attributes.erase("weight_decay");
      operands.push_back(*item.indices);
      operands.push_back(as_type(item.gradient, gradient_dtype(item.parameter)));
    } else {
      operands.push_back(item.gradient);
    }
    const std::vector<TensorId> results = add(type_name, attributes, operands);
    SHARDPLAN_CHECK(results.size() == stored.size());
    if (parameter.pins && parameter.pins->state_strategy) {
      give_layout(builder_.op(*builder_.tensor(results[0]).producer), *parameter.pins->state_strategy,
                  parameter.name + ": state_strategy");
    }
    for (std::size_t i = 0; i < stored.size(); ++i) builder_.tensor(results[i]).updates = stored[i];
    if (is_mixed) {
      const TensorId cast = add("Cast", {{"dtype", std::string(to_string(parameter.type.dtype))}}, {results[0]})[0];
      builder_.tensor(cast).updates = item.parameter;
    }
  }

  // ---- names

  /// The name, or the first free one of name_1, name_2, ... Every gradient may ask for the same name.
  SharedText unique(const std::string& name) {
    SharedText result = name;
    if (is_new(result)) return result;
    int& number = last_numbers_[name];
    do {
      result = fmt::format("{}_{}", name, ++number);
    } while (!is_new(result));
    return result;
  }

  /// Adds the name; false if the forward graph has it or it was added before.
  bool is_new(const SharedText& name) { return !is_forward(name) && add_name(name); }

  /// False if the name was added before.
  bool add_name(const SharedText& name) {
    names_.push_back(name);
    const auto name_at = [this](std::size_t i) -> std::string_view { return names_[i]; };
    if (positions_.add(names_.size() - 1, name_at)) return true;
    names_.pop_back();
    return false;
  }

  bool is_forward(std::string_view name) const {
    if (forward_.find_operator(name)) return true;
    const std::optional<TensorId> tensor = forward_.find_tensor(name);
    return tensor && forward_.tensor(*tensor).name == name;  // not an alias
  }

  const OperatorGraph& forward_;
  const TrainingOptions& options_;
  mutable OperatorGraphBuilder builder_;
  std::map<const OperatorType*, std::vector<AddedOperation>> operations_;  // looked up, never iterated
  IdVector<TensorId, char> needed_;
  IdVector<TensorId, std::vector<TensorId>> gradients_;
  std::map<TensorId, Rows> rows_;                         // by parameter of which rows are updated
  std::map<std::pair<int, DataType>, Joined> joined_;     // by fusion id and type
  IdVector<TensorId, std::optional<TensorId>> finished_;  // by parameter: the gradient its update reads
  std::vector<SharedText> names_;                         // names that the forward graph does not have
  NameTable positions_;                                   // of `names_`
  std::unordered_map<std::string, int> last_numbers_;     // by name that was requested again
  std::optional<OperatorId> current_;                     // the forward operator whose gradient is being added
  std::optional<TensorId> parameter_;                     // the parameter whose gradient is finished or that is updated
  std::optional<TensorId> squared_;                       // the parameter whose gradient's norm is taken
  Pass pass_ = Pass::kBackward;
  std::string update_name_;
};

}  // namespace

OperatorGraph differentiate(const OperatorGraph& forward, const TrainingOptions& options) {
  return Differentiation(forward, options).run();
}

}  // namespace shardplan
