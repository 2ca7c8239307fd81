#include "model/model_instance.h"

#include <functional>
#include <unordered_map>

#include "model/parameter_pins.h"
#include "model/setting_checks.h"
#include "operators/catalogue.h"

// Templates are walked like a call tree: each use of a block adds its copy's tensors and operators under the names of
// that use. On the way down every block passes on the decisions that hold inside it (`Inherited`); settings at an
// operator or block, or under its full name in `strategies:`, override them. The cost is that of the resulting graph,
// and nothing is looked up twice.

namespace shardplan {
namespace {

using Value = BlockTemplate::Value;

/// What holds for everything inside a block.
struct Inherited {
  ParallelMode mode = ParallelMode::kAutoParallel;
  std::optional<int> level;
  SharedText level_scope;
  bool recompute = false;
  SharedText recompute_scope;  // the outermost block marked `recompute`; of a repeat each copy is one
  std::optional<bool> gather_again;
  bool compiled = true;
  std::optional<bool> requires_grad;
  std::optional<int> comm_fusion;
  std::optional<int> worker;
  std::optional<Placed<DataType>> gradient_dtype, state_dtype;
  bool parallel_optimizer = true;
};

/// Where in the model a copy stands.
struct Position {
  std::string prefix;                  // "layers.3."
  SharedText scope;                    // "layers-CellList/3-layer"
  std::string parameter_prefix;        // before the names of its parameters: `prefix`, but where they are another's
  const Word* share = nullptr;         // where the user says that they are
  const SourcePlace* place = nullptr;  // of the use, inside a built-in block

  std::string scope_of(const std::string& part) const { return scope.empty() ? part : scope.str() + "/" + part; }
};

/// One operator or block of the model, by its full name.
struct Site {
  std::string name;          // "layers.3.attn"
  const Position& position;  // of the block that contains it
  SourcePlace place;
};

class Instantiation {
 public:
  Instantiation(const ParallelOptions& parallel, const TrainingOptions* training, SettingsTable settings,
                OperatorGraphBuilder graph)
      : parallel_(parallel),
        training_(training),
        settings_(std::move(settings)),
        builder_(std::move(graph)),
        checks_(parallel, training, faults_),
        recompute_used_(training != nullptr ? training->recompute.size() : 0) {}

  ModelInstance run(const BlockTemplate& file) {
    device_ = parallel_.device;
    std::vector<TensorId> inputs;
    for (std::size_t i = 0; i < file.num_inputs; ++i) inputs.push_back(add_input(file, i));
    for (std::size_t i = 0; i < inputs.size(); ++i) checks_.check_input(builder_.tensor(inputs[i]), i);
    set_dataset_strategy(inputs);
    Inherited inherited;
    inherited.mode = parallel_.parallel_mode;
    inherited.gather_again = parallel_.gather_again;
    if (parallel_.is_pynative && inherited.mode == ParallelMode::kAutoParallel) {
      inherited.mode = ParallelMode::kDataParallel;  // but for what is sharded
    }
    std::optional<TensorId> loss;
    for (const TensorId output : add_block(file, inputs, {}, inherited, &loss))
      builder_.tensor(output).is_output = true;
    if (loss) {
      builder_.tensor(*loss).is_output = true;
      builder_.set_loss(*loss);
    }
    check_names();
    const char* mode = is_alone() ? "stand_alone" : "data_parallel";
    if (ignores_strategies_) notices_.push_back(fmt::format("strategies are not used in parallel_mode {}", mode));
    if (ignores_own_modes_) {
      notices_.push_back(
          fmt::format("level and parallel_mode of operators and blocks are not used in parallel_mode {}", mode));
    }
    if (overridden_outputs_ > 0) {
      notices_.push_back(
          fmt::format("out_strategy of {} block{} gives way to data parallel in training ({})", overridden_outputs_,
                      overridden_outputs_ == 1 ? "" : "s",
                      parallel_.compat.empty() ? "keep_out_strategy: false" : "compat: " + parallel_.compat));
    }
    return {std::move(builder_), std::move(device_),  is_sharded_,
            last_worker_,        std::move(notices_), std::move(faults_)};
  }

 private:
  void fault(const SourcePlace& place, std::string message) { faults_.push_back({place, std::move(message), {}}); }

  // ---- tensors ----------------------------------------------------------------------------------------------------

  TensorId add_input(const BlockTemplate& file, std::size_t i) {
    const TensorSyntax& syntax = file.syntax->inputs[i];
    GraphTensor tensor;
    tensor.name = syntax.name.text;
    tensor.type = file.types[i];
    tensor.kind = TensorKind::kInput;
    tensor.place = syntax.name.place;
    tensor.layout = layout_of(settings_of_tensor(tensor.name, syntax.settings, "an input", false).strategy, is_alone());
    return builder_.add_tensor(std::move(tensor));
  }

  /// What is said of a tensor, beside it and elsewhere; what is not for a tensor of its kind is a fault.
  Settings settings_of_tensor(const std::string& name, const Settings& beside, const char* what, bool is_parameter) {
    Settings said = settings_.find(name, beside, faults_);
    checks_.check_tensor(name, said, what, is_parameter);
    return said;
  }

  /// The layout that is said of an input or parameter; nothing where the mode knows no strategies.
  std::optional<StrategyEntry> layout_of(const std::optional<Placed<StrategyEntry>>& strategy, bool is_ignored) {
    if (strategy && is_ignored) ignores_strategies_ = true;
    return strategy && !is_ignored ? std::optional(strategy->value) : std::nullopt;
  }

  void set_dataset_strategy(const std::vector<TensorId>& inputs) {
    if (!parallel_.dataset_strategy || is_alone()) return;
    if (!parallel_.dataset_entries.empty() && parallel_.dataset_entries.size() != inputs.size()) {
      fault(parallel_.dataset_entries[0].place,
            fmt::format("dataset_strategy has {} entr{}, the model has {} input{}", parallel_.dataset_entries.size(),
                        parallel_.dataset_entries.size() == 1 ? "y" : "ies", inputs.size(),
                        inputs.size() == 1 ? "" : "s"));
      return;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      GraphTensor& tensor = builder_.tensor(inputs[i]);
      if (tensor.layout) continue;  // its own strategy wins
      StrategyEntry entry;
      entry.place = parallel_.place;
      if (!parallel_.dataset_entries.empty()) {
        entry = parallel_.dataset_entries[i];
      } else if (*parallel_.dataset_strategy == "full_batch") {
        entry.kind = tensor.type.shape.empty() ? StrategyEntry::Kind::kFollow : StrategyEntry::Kind::kTuple;
        entry.tuple.assign(tensor.type.shape.size(), 1);
      } else {
        entry.kind = StrategyEntry::Kind::kDataParallel;
      }
      tensor.layout = std::move(entry);
    }
  }

  void add_stored(const BlockTemplate& block, const BlockTemplate::Stored& stored, TensorKind kind,
                  const Position& position, const Inherited& inherited, std::vector<TensorId>& ids) {
    const bool is_parameter = kind == TensorKind::kParameter;
    const std::string own_name = position.prefix + stored.name;
    GraphTensor tensor;
    tensor.name = is_parameter ? position.parameter_prefix + stored.name : own_name;
    tensor.type = block.types[stored.value];
    if (is_parameter && finds_shared(tensor, own_name, position)) {
      ids[stored.value] = parameters_.at(tensor.name).tensor;
      count(builder_.tensor(ids[stored.value]));
      return;
    }
    tensor.kind = kind;
    tensor.fill = stored.fill;
    if (stored.syntax) {
      tensor.place = position.place ? *position.place : stored.syntax->name.place;
      tensor.layerwise_parallel = stored.syntax->layerwise_parallel;
      if (is_parameter) {
        Settings said = settings_of_tensor(tensor.name, stored.syntax->settings, "a parameter", true);
        tensor.layout = layout_of(said.strategy, ignores_strategies());
        tensor.requires_grad = said.requires_grad ? said.requires_grad->value : inherited.requires_grad.value_or(true);
        if (said.comm_fusion) checks_.check_fusion(tensor.name, *said.comm_fusion, tensor.requires_grad);
        tensor.comm_fusion = said.comm_fusion ? said.comm_fusion->value : inherited.comm_fusion;
        if (!said.gradient_dtype && tensor.requires_grad) said.gradient_dtype = inherited.gradient_dtype;
        if (!said.state_dtype && tensor.requires_grad) said.state_dtype = inherited.state_dtype;
        tensor.parallel_optimizer =
            said.parallel_optimizer ? said.parallel_optimizer->value : inherited.parallel_optimizer;
        check_parameter_pins(tensor, said, parallel_, training_, faults_);
        if (ignores_strategies() && (said.gradient_strategy || said.state_strategy)) {
          ignores_strategies_ = true;
          said.gradient_strategy.reset();
          said.state_strategy.reset();
        }
        tensor.pins = parameter_pins(said);
      }
    }
    const std::string name = tensor.name;
    ids[stored.value] = builder_.add_tensor(std::move(tensor));
    if (is_parameter) {
      count(builder_.tensor(ids[stored.value]));
      parameters_.emplace(name, Parameter{ids[stored.value], position.share});
      if (name != own_name) add_other_name(own_name, ids[stored.value], position);
    }
  }

  struct Counted {
    std::size_t parameters = 0, trained = 0;
  };
  void count(const GraphTensor& parameter) {
    ++counted_.parameters;
    if (parameter.requires_grad) ++counted_.trained;
  }
  /// Keys of training have an effect only if something in the block is trained.
  void check_trains(const std::string& block, const Settings& said, const Counted& before) {
    if (counted_.parameters == before.parameters || counted_.trained > before.trained) return;
    checks_.check_untrained_block(block, said);
  }

  /// True if the parameter is there already, since another use of its block shares it; `own_name` then becomes another
  /// name of it. Whichever of the uses comes first makes it, under its owner's name.
  bool finds_shared(const GraphTensor& parameter, const std::string& own_name, const Position& position) {
    const auto known = parameters_.find(parameter.name);
    if (known == parameters_.end()) return false;
    const Word* share = position.share ? position.share : known->second.share;
    const TensorType& type = builder_.tensor(known->second.tensor).type;
    if (type != parameter.type) {
      fault(share->place,
            fmt::format("share: {} is {} {} in one use and {} {} in another", parameter.name, to_string(type.dtype),
                        to_string(type.shape), to_string(parameter.type.dtype), to_string(parameter.type.shape)));
    }
    if (own_name != parameter.name) add_other_name(own_name, known->second.tensor, position);
    return true;
  }

  void add_other_name(const std::string& name, TensorId parameter, const Position& position) {
    parameters_.emplace(name, Parameter{parameter, position.share});
    builder_.add_alias(name, parameter);
  }

  // ---- blocks -----------------------------------------------------------------------------------------------------

  std::vector<TensorId> add_block(const BlockTemplate& block, const std::vector<TensorId>& inputs,
                                  const Position& position, const Inherited& inherited,
                                  std::optional<TensorId>* loss = nullptr) {
    std::vector<TensorId> ids(block.types.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) ids[i] = inputs[i];
    for (const auto& stored : block.parameters) {
      add_stored(block, stored, TensorKind::kParameter, position, inherited, ids);
    }
    for (const auto& stored : block.constants) {
      add_stored(block, stored, TensorKind::kConstant, position, inherited, ids);
    }
    for (const BlockTemplate::Item& item : block.items) {
      if (item.copies.empty()) {
        add_operator(item, position, inherited, ids);
      } else {
        add_call(block, item, position, inherited, ids);
      }
    }
    std::vector<TensorId> outputs;
    for (const Value output : block.outputs) outputs.push_back(ids[output]);
    if (loss && block.loss) *loss = ids[*block.loss];
    return outputs;
  }

  /// What holds inside an operator or block: its own settings, else those around it.
  Inherited inside(const std::string& name, const Settings& settings, const Inherited& around) {
    Inherited result = around;
    if (settings.parallel_mode) result.mode = settings.parallel_mode->value;
    if (settings.level) {
      result.level = settings.level->value;
      result.level_scope = name;
    }
    if (settings.recompute) result.recompute = settings.recompute->value;
    if (settings.gather_again) result.gather_again = settings.gather_again->value;
    if (settings.compiled) result.compiled = settings.compiled->value;
    if (settings.requires_grad) result.requires_grad = settings.requires_grad->value;
    if (settings.comm_fusion) result.comm_fusion = settings.comm_fusion->value;
    if (settings.gradient_dtype) result.gradient_dtype = settings.gradient_dtype;
    if (settings.state_dtype) result.state_dtype = settings.state_dtype;
    if (settings.parallel_optimizer) result.parallel_optimizer = settings.parallel_optimizer->value;
    if (settings.worker) {
      result.worker = settings.worker->value;
      if (!last_worker_ || last_worker_->value < settings.worker->value) last_worker_ = settings.worker;
    }
    bool is_listed = false;
    for (std::size_t i = 0; i < recompute_used_.size(); ++i) {
      if (!matches_name(training_->recompute[i], name)) continue;
      recompute_used_[i] = true;
      is_listed = true;
    }
    checks_.check_backward(name, settings, is_listed);
    result.recompute = result.recompute || is_listed;
    if (!result.recompute) result.recompute_scope = {};
    if (result.recompute && result.recompute_scope.empty()) result.recompute_scope = name;
    return result;
  }

  GraphOperator make_operator(const Site& site, const std::string& suffix, const Inherited& inherited) {
    GraphOperator op;
    op.name = site.name + suffix;
    op.scope = site.position.scope;
    op.place = site.place;
    op.level = inherited.level;
    op.level_scope = inherited.level_scope;
    op.recompute_scope = inherited.recompute_scope;
    op.gather_again = inherited.gather_again;
    op.is_compiled = inherited.compiled;
    op.worker = inherited.worker.value_or(0);
    op.is_placed = inherited.worker.has_value();
    return op;
  }

  static Site site_of(const BlockTemplate::Item& item, const Position& position) {
    const Word& name = item.syntax->name;
    return {position.prefix + name.text, position, position.place ? *position.place : name.place};
  }

  bool is_alone() const { return parallel_.parallel_mode == ParallelMode::kStandAlone; }
  /// True in the modes that know no strategies.
  bool ignores_strategies() const { return is_alone() || parallel_.parallel_mode == ParallelMode::kDataParallel; }

  bool is_data_parallel(const Inherited& inherited, bool has_strategy) const {
    if (ignores_strategies()) return parallel_.parallel_mode == ParallelMode::kDataParallel;
    const bool by_mode =
        inherited.mode == ParallelMode::kDataParallel || inherited.mode == ParallelMode::kSemiAutoParallel;
    return by_mode && !has_strategy;
  }

  /// The settings of an operator or block, without those of a search that the file's mode ignores.
  Settings settings_of(const std::string& name, const Settings& beside) {
    Settings settings = settings_.find(name, beside, faults_);
    if (!ignores_strategies()) return settings;
    if (settings.in_strategy || settings.out_strategy || settings.strategy) ignores_strategies_ = true;
    if (settings.level || settings.parallel_mode) ignores_own_modes_ = true;
    settings.level.reset();
    settings.parallel_mode.reset();
    settings.in_strategy.reset();
    settings.out_strategy.reset();
    settings.strategy.reset();
    return settings;
  }

  void add_operator(const BlockTemplate::Item& item, const Position& position, const Inherited& around,
                    std::vector<TensorId>& ids) {
    const Site site = site_of(item, position);
    const Settings settings = settings_of(site.name, item.syntax->settings);
    const Inherited inherited = inside(site.name, settings, around);
    checks_.check_operator(site.name, settings);
    GraphOperator op = make_operator(site, "", inherited);
    op.operation = item.operation;
    for (const Value operand : item.operands) op.operands.push_back(ids[operand]);
    if (settings.in_strategy) {
      op.strategy.edit().in = settings.in_strategy->value;
      op.strategy.edit().in_place = settings.in_strategy->place;
    }
    if (settings.out_strategy) {
      op.strategy.edit().out = settings.out_strategy->value;
      op.strategy.edit().out_place = settings.out_strategy->place;
    }
    op.is_data_parallel = is_data_parallel(inherited, settings.in_strategy || settings.out_strategy);
    note_device(settings);
    std::vector<std::string> result_names;
    for (const std::string& result : item.result_names) result_names.push_back(position.prefix + result);
    const std::vector<TensorId> results = builder_.op(builder_.add_operator(std::move(op), result_names)).results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      ids[item.results[i]] = results[i];
      const Settings of_result = result_names[i] == site.name ? settings : settings_of(result_names[i], {});
      if (!of_result.strategy) continue;
      checks_.check_one_layout(result_names[i], settings.out_strategy, *of_result.strategy);
      const Site of_name{result_names[i], position, site.place};
      ids[item.results[i]] = add_border(of_name, ".out0", results[i], of_result.strategy->value, inherited);
    }
  }

  /// An Identity that pins a layout, named by the suffix ".in0" or ".out0"; none where the entry is [] (follows).
  TensorId add_border(const Site& site, const std::string& suffix, TensorId tensor, StrategyEntry entry,
                      const Inherited& inherited) {
    if (entry.kind == StrategyEntry::Kind::kFollow) return tensor;
    GraphOperator op = make_operator(site, suffix, inherited);
    op.operands = {tensor};
    op.border_of = site.name;
    op.is_data_parallel = is_data_parallel(inherited, true);
    if (suffix.starts_with(".in")) {
      op.strategy.edit().in_place = entry.place;
      op.strategy.edit().in = {std::move(entry)};
    } else {
      op.strategy.edit().out_place = entry.place;
      op.strategy.edit().out = {std::move(entry)};
    }
    const OperatorType* identity = find_operator_type("Identity");
    SHARDPLAN_CHECK(identity != nullptr);
    const OperatorId id =
        builder_.add_operator(std::move(op), make_operation(*identity, {}, {builder_.tensor(tensor).type}));
    return builder_.op(id).results[0];
  }

  void check_count(const std::optional<Placed<std::vector<StrategyEntry>>>& entries, const char* key,
                   const std::string& name, std::size_t expected, const char* what) {
    if (!entries || entries->value.size() == expected) return;
    fault(entries->place,
          fmt::format("{}: {} has {} entr{}, {} has {} {}{}", name, key, entries->value.size(),
                      entries->value.size() == 1 ? "y" : "ies", name, expected, what, expected == 1 ? "" : "s"));
  }

  using AddInside =
      std::function<std::vector<TensorId>(const std::vector<TensorId>& inputs, const Inherited& inherited)>;

  /// One block with its border: a use, the whole of a repeated use, or one copy of it.
  std::vector<TensorId> add_bordered(const Site& site, const Settings& settings, std::vector<TensorId> inputs,
                                     std::size_t num_results, const Inherited& around, const AddInside& add) {
    Inherited inherited = inside(site.name, settings, around);
    if (settings.comm_fusion) checks_.check_fusion(site.name, *settings.comm_fusion, true);
    check_block_pins(site.name, settings, training_, faults_);
    block_names_.push_back(site.name);
    note_device(settings);
    auto out_strategy = settings.out_strategy;
    if (settings.strategy) checks_.check_one_layout(site.name, out_strategy, *settings.strategy);
    if (settings.strategy && !out_strategy) out_strategy = {{settings.strategy->value}, settings.strategy->place};
    is_sharded_ = is_sharded_ || settings.in_strategy || out_strategy;
    check_count(settings.in_strategy, "in_strategy", site.name, inputs.size(), "input");
    check_count(out_strategy, "out_strategy", site.name, num_results, "result");
    // The user fixes the border; what is inside is searched, unless the block has a mode of its own.
    if ((settings.in_strategy || out_strategy || settings.level) && !settings.parallel_mode) {
      inherited.mode = ParallelMode::kAutoParallel;
    }
    if (settings.in_strategy && settings.in_strategy->value.size() == inputs.size()) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        inputs[i] = add_border(site, ".in" + std::to_string(i), inputs[i], settings.in_strategy->value[i], inherited);
      }
    }
    std::vector<TensorId> results = add(inputs, inherited);
    if (out_strategy && out_strategy->value.size() == results.size()) {
      const bool is_overridden = training_ && !parallel_.keep_out_strategy;
      if (is_overridden) ++overridden_outputs_;
      for (std::size_t i = 0; i < results.size(); ++i) {
        StrategyEntry entry = out_strategy->value[i];
        if (is_overridden) {
          entry = {};
          entry.kind = StrategyEntry::Kind::kDataParallel;
          entry.place = out_strategy->value[i].place;
        }
        results[i] = add_border(site, ".out" + std::to_string(i), results[i], std::move(entry), inherited);
      }
    }
    if (results.size() == 1) builder_.add_alias(site.name, results[0]);
    return results;
  }

  /// What stands before the names of the parameters of one copy of a used block.
  std::string parameter_prefix(const BlockTemplate& block, const BlockTemplate::Item& item, std::size_t copy,
                               const Position& position) {
    const OperatorSyntax* owner = item.syntax;
    if (owner->share) {
      const auto found = std::find_if(block.items.begin(), block.items.end(), [&](const BlockTemplate::Item& other) {
        return other.syntax->name.text == item.syntax->share->text;
      });
      SHARDPLAN_CHECK(found != block.items.end());
      owner = found->syntax;
      if (copy == 0 && !owner->share && found->copies.size() < item.copies.size()) {
        fault(item.syntax->share->place,
              fmt::format("{}: share: {} has {} copies, {} has {}", item.syntax->name.text, owner->name.text,
                          found->copies.size(), item.syntax->name.text, item.copies.size()));
      }
    }
    const std::size_t owners_copy = owner->share ? 0 : copy;  // the owner's copies share among themselves
    return position.parameter_prefix + owner->name.text + (owner->repeat ? fmt::format(".{}.", owners_copy) : ".");
  }

  void add_call(const BlockTemplate& caller, const BlockTemplate::Item& item, const Position& position,
                const Inherited& around, std::vector<TensorId>& ids) {
    const OperatorSyntax& syntax = *item.syntax;
    const Site site = site_of(item, position);
    const Settings settings = settings_of(site.name, syntax.settings);
    const Counted before = counted_;
    std::vector<TensorId> inputs;
    for (const Value operand : item.operands) inputs.push_back(ids[operand]);
    const auto add_inner = [&](std::size_t copy, const Site& inner_site, const std::string& scope, const Settings& said,
                               const std::vector<TensorId>& arguments, const Inherited& outside) {
      const BlockTemplate& block = *item.copies[copy];
      Position inner{inner_site.name + ".", position.scope_of(scope), parameter_prefix(caller, item, copy, position),
                     syntax.share ? &*syntax.share : position.share, position.place};
      if (!inner.place && block.syntax->is_built_in) inner.place = &syntax.name.place;
      checks_.note_owner(inner_site.name, said, inner.parameter_prefix.substr(0, inner.parameter_prefix.size() - 1));
      return add_bordered(inner_site, said, arguments, block.outputs.size(), outside,
                          [&](const std::vector<TensorId>& bordered, const Inherited& inherited) {
                            return add_block(block, bordered, inner, inherited);
                          });
    };
    const std::string& block_name = item.copies[0]->syntax->scope_name;
    std::vector<TensorId> results;
    if (!syntax.repeat) {
      results = add_inner(0, site, syntax.name.text + "-" + block_name, settings, inputs, around);
    } else {
      // A border round the whole repeat, and one round each copy.
      checks_.note_owner(site.name, settings,
                         position.parameter_prefix + (syntax.share ? syntax.share->text : syntax.name.text));
      const std::size_t results_per_copy = item.results.size() / item.copies.size();
      const auto add_copies = [&](const std::vector<TensorId>& arguments, const Inherited& inherited) {
        std::vector<TensorId> next = arguments;
        Inherited each = inherited;
        if (each.recompute_scope == site.name) each.recompute_scope = {};
        for (std::size_t i = 0; i < item.copies.size(); ++i) {
          const Site copy{fmt::format("{}.{}", site.name, i), position, site.place};
          const std::string scope = fmt::format("{}-CellList/{}-{}", syntax.name.text, i, block_name);
          const Settings said = settings_of(copy.name, {});
          const Counted before_copy = counted_;
          const std::vector<TensorId> of_copy = add_inner(i, copy, scope, said, next, each);
          if (i == 0) check_trains(copy.name, said, before_copy);
          std::copy(of_copy.begin(), of_copy.end(), next.begin());
          results.insert(results.end(), of_copy.begin(), of_copy.end());
        }
        return std::vector<TensorId>(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(results_per_copy));
      };
      const std::vector<TensorId> last = add_bordered(site, settings, inputs, results_per_copy, around, add_copies);
      std::copy(last.begin(), last.end(), results.end() - static_cast<std::ptrdiff_t>(results_per_copy));
    }
    check_trains(site.name, settings, before);
    for (std::size_t i = 0; i < results.size(); ++i) ids[item.results[i]] = results[i];
    for (const BlockTemplate::Parameter& parameter : item.parameters) {
      const std::string copy = syntax.repeat ? "." + std::to_string(parameter.copy) : "";
      ids[parameter.value] = parameters_.at(site.name + copy + "." + parameter.path).tensor;
    }
  }

  // ---- checks -----------------------------------------------------------------------------------------------------

  /// MindSpore's shard(..., device=...) names the device of the whole job.
  void note_device(const Settings& settings) {
    if (!settings.device) return;
    if (!device_) device_ = settings.device;
    if (device_->value == settings.device->value) return;
    fault(settings.device->place,
          fmt::format("device is {}, but {} in line {}", settings.device->value, device_->value, device_->place.line));
  }

  void check_names() {
    std::vector<std::string> names = block_names_;
    for (std::size_t i = 0; i < builder_.num_tensors(); ++i) names.push_back(builder_.tensor(TensorId(i)).name);
    for (std::size_t i = 0; i < builder_.num_operators(); ++i) names.push_back(builder_.op(OperatorId(i)).name);
    settings_.check_used(names, faults_);
    checks_.report_shared();
    for (std::string& notice : settings_.overridden()) notices_.push_back(std::move(notice));
    for (std::size_t i = 0; i < recompute_used_.size(); ++i) {
      if (recompute_used_[i]) continue;
      const std::string nearest = nearest_name(training_->recompute[i], names);
      fault(training_->place, fmt::format("training: recompute: no operator or block '{}'{}", training_->recompute[i],
                                          nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
    }
  }

  const ParallelOptions& parallel_;
  const TrainingOptions* training_;
  SettingsTable settings_;
  OperatorGraphBuilder builder_;
  std::vector<std::string> notices_;
  std::vector<Diagnostic> faults_;
  SettingChecks checks_;
  struct Parameter {
    TensorId tensor;
    const Word* share = nullptr;
  };
  std::unordered_map<std::string, Parameter> parameters_;  // by each of their names; never iterated over
  std::vector<std::string> block_names_;
  std::vector<bool> recompute_used_;
  Counted counted_;  // of all blocks so far
  std::optional<Placed<int>> last_worker_;
  std::optional<Placed<std::string>> device_;
  bool is_sharded_ = false;
  bool ignores_strategies_ = false;
  bool ignores_own_modes_ = false;
  int overridden_outputs_ = 0;
};

}  // namespace

ModelInstance instantiate_model(const BlockTemplate& file, const ParallelOptions& parallel,
                                const TrainingOptions* training, SettingsTable settings, OperatorGraphBuilder graph) {
  return Instantiation(parallel, training, std::move(settings), std::move(graph)).run(file);
}

}  // namespace shardplan
