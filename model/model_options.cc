// The sections `training:` and `parallel:`, key by key, then what the keys say together.
//
// The keys and their values are listed in syntax/model_keys.h, from which the JSON Schema is written
// too. Here are the rules between them: options of data parallelism need a mode that decides it, stages of ZeRO exclude
// the words that they stand for. A key that could have no effect is a fault, not a default.

#include "model/model_options.h"

#include <algorithm>

#include "model/comm_fusion_options.h"
#include "model/option_reader.h"
#include "model/syntax/expression.h"
#include "model/syntax/model_keys.h"
#include "model/syntax/scalar_values.h"
#include "model/syntax/strategy_syntax.h"

// Each option is one call that names its key, so that the two functions at the end read like the sections themselves.
// A value that is wrong is reported and keeps its default: the rest of the file is still checked.

namespace shardplan {
namespace {

constexpr std::int64_t kMaxDevices = 1 << 24;

void read_mesh(const OptionReader& reader, ParallelOptions& options) {
  const YamlNode* node = reader.find("mesh");
  if (!node) return;
  options.mesh_place = reader.place(*node);
  if (node->is_scalar() && node->text == "auto") {
    options.searches_mesh = true;
    return;
  }
  if (!node->is_map() || node->entries.empty()) {
    reader.refuse(*node, "mesh", "auto, or axes with their sizes as in {dp: 2, mp: 4}");
    return;
  }
  std::int64_t devices = 1;
  for (const YamlEntry& axis : node->entries) {
    if (!is_name(axis.key.text)) {
      reader.refuse(axis.key, "mesh", "an axis name of letters, digits and '_'");
      continue;
    }
    const std::optional<std::int64_t> size = reader.whole(axis.value, "mesh", 1, kMaxDevices);
    if (!size) continue;
    devices = std::min(devices * *size, kMaxDevices + 1);
    options.mesh.emplace_back(axis.key.text, *size);
  }
  if (devices > kMaxDevices) reader.fault(*node, fmt::format("parallel: mesh has more than {} devices", kMaxDevices));
  if (options.device_num && devices != options.device_num->value) {
    reader.fault(*node,
                 fmt::format("parallel: mesh has {} devices, device_num is {}", devices, options.device_num->value));
  }
}

std::optional<Placed<bool>> placed_flag(const OptionReader& reader, const char* key) {
  const YamlNode* node = reader.find(key);
  if (!node) return std::nullopt;
  Placed<bool> flag{false, reader.place(*node)};
  reader.flag(key, flag.value);
  return flag;
}

/// What data parallelism does with gradients can be set only where it is decided, not searched.
void check_gradient_options(const OptionReader& reader, const ParallelOptions& options) {
  const bool is_data_parallel = options.parallel_mode == ParallelMode::kDataParallel;
  const bool is_semi_auto = options.parallel_mode == ParallelMode::kSemiAutoParallel;
  const bool is_sum = options.gradients_mean && !options.gradients_mean->value;
  if (is_sum && !is_data_parallel && options.parallel_mode != ParallelMode::kHybridParallel) {
    reader.fault(*reader.find("gradients_mean"),
                 "parallel: gradients_mean: false is for parallel_mode data_parallel and hybrid_parallel; elsewhere a "
                 "gradient is always that of the loss of the whole batch, which is the mean");
  }
  if (options.gradient_fp32_sync && !is_data_parallel && !is_semi_auto) {
    reader.fault(
        *reader.find("gradient_fp32_sync"),
        "parallel: gradient_fp32_sync is for parallel_mode data_parallel and semi_auto_parallel; elsewhere the "
        "search decides where gradients are summed");
  }
}

/// What is in pieces where the modes decide it.
void read_zero(const OptionReader& reader, ParallelOptions& options) {
  const bool is_decided =
      options.parallel_mode == ParallelMode::kDataParallel || options.parallel_mode == ParallelMode::kSemiAutoParallel;
  const auto check_mode = [&](const char* key) {
    if (is_decided) return;
    reader.fault(*reader.find(key),
                 fmt::format("parallel: {} is for parallel_mode data_parallel and semi_auto_parallel; elsewhere the "
                             "search decides what is in pieces",
                             key));
  };
  if (const auto stage = reader.whole("zero", 0, 3)) {
    options.zero = {*stage, reader.place(*reader.find("zero"))};
    check_mode("zero");
    if (reader.find("enable_parallel_optimizer") != nullptr) {
      reader.fault(*reader.find("zero"), "parallel: zero and enable_parallel_optimizer both say how states are cut",
                   "keep one of them");
    }
  }
  reader.flag("reshard_after_forward", options.reshard_after_forward);
  if (const YamlNode* key = reader.find("reshard_after_forward")) {
    check_mode("reshard_after_forward");
    // In semi_auto_parallel a weight may be in pieces by its own strategy.
    if (options.zero ? options.zero->value < 3 : options.parallel_mode == ParallelMode::kDataParallel) {
      reader.fault(
          *key,
          fmt::format("parallel: reshard_after_forward is of weights in pieces, but {} leaves them whole",
                      options.zero ? fmt::format("zero: {}", options.zero->value) : "data_parallel without zero: 3"));
    }
  }
  options.gradient_accumulation_shard = placed_flag(reader, "gradient_accumulation_shard");
  if (!options.gradient_accumulation_shard) return;
  const YamlNode& key = *reader.find("gradient_accumulation_shard");
  check_mode("gradient_accumulation_shard");
  const bool is_once = !options.gradient_accumulation_shard->value;
  if (is_once && options.gradient_fp32_sync && !options.gradient_fp32_sync->value) {
    reader.fault(key,
                 "parallel: gradient_accumulation_shard: false sums over the devices once a step, as f32; "
                 "gradient_fp32_sync: false does it as they are, with every micro-batch",
                 "keep one of them");
  }
}

/// full_batch and dataset_strategy may both say that inputs are whole, but not that they are and are not.
void check_full_batch(const OptionReader& reader, const YamlNode& data, const ParallelOptions& options) {
  if (!options.dataset_strategy) return;
  const bool cuts_inputs =
      *options.dataset_strategy == "data_parallel" || std::ranges::any_of(options.dataset_entries, cuts);
  const YamlNode* full_batch = reader.find("full_batch");
  const bool is_said_false = full_batch != nullptr && flag_value(*full_batch) == false;
  if (options.full_batch && cuts_inputs) {
    reader.fault(data, "parallel: dataset_strategy cuts the inputs, but full_batch is true", "keep one of them");
  } else if (is_said_false && *options.dataset_strategy == "full_batch") {
    reader.fault(data, "parallel: dataset_strategy is full_batch, but full_batch is false", "keep one of them");
  }
}

/// How activations that are gathered are kept for the backward pass.
void read_gather_again(const OptionReader& reader, ParallelOptions& options) {
  const std::optional<Placed<bool>> said = placed_flag(reader, "gather_again");
  if (!said) return;
  options.gather_again = said->value;
  if (options.parallel_mode == ParallelMode::kStandAlone) {
    reader.fault(*reader.find("gather_again"),
                 "parallel: gather_again is for several devices, not for parallel_mode stand_alone");
  }
}

/// Keys of gradients, of states and of what the backward pass reads.
constexpr const char* kOfTraining[] = {
    "gradients_mean",        "gradient_fp32_sync", "enable_parallel_optimizer",   "zero",
    "reshard_after_forward", "gather_again",       "gradient_accumulation_shard", "keep_out_strategy"};

/// What devices begin with, and what each keeps to itself.
void read_own_of_devices(const OptionReader& reader, ParallelOptions& options) {
  reader.flag("parameter_broadcast", options.parameter_broadcast);
  if (options.parameter_broadcast && options.parallel_mode == ParallelMode::kStandAlone) {
    reader.fault(*reader.find("parameter_broadcast"),
                 "parallel: parameter_broadcast is for several devices, not for parallel_mode stand_alone");
  }
  options.local_batch_norm = reader.choice("batch_norm").value_or("") == "local";
  if (options.local_batch_norm && options.parallel_mode != ParallelMode::kDataParallel) {
    reader.fault(*reader.find("batch_norm"),
                 "parallel: batch_norm local is for parallel_mode data_parallel; elsewhere a batch is normalised as a "
                 "whole");
  }
}

/// Keys of some optimizers only are refused beside the others, which would ignore them.
void check_optimizer_keys(const OptionReader& reader, const std::string& optimizer) {
  constexpr std::string_view kMomentum = "momentum", kAdam = "adam and adamw";
  constexpr std::pair<const char*, std::string_view> kKeys[] = {
      {"momentum", kMomentum}, {"beta1", kAdam}, {"beta2", kAdam}, {"eps", kAdam}};
  const std::string_view own = optimizer == "momentum" ? kMomentum : optimizer == "sgd" ? "" : kAdam;
  for (const auto& [key, owner] : kKeys) {
    const YamlNode* node = reader.find(key);
    if (!node || owner == own) continue;
    reader.fault(*node, fmt::format("training: {} is for optimizer {}; {} does not use it", key, owner, optimizer));
  }
}

/// Words of MindSpore's set_auto_parallel_context for which there is another way here, or nothing to decide.
constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {
    {"mode", "it stands at the top of the file: `mode: pynative`"},
    {"save_graphs", "`plan --out DIR` writes step_parallel_end.ir"},
    {"device_target", "it is called device"},
    {"sharding_propagation", "search_mode: sharding_propagation"},
    {"global_rank", "one run plans all ranks; `--rank R` writes what rank R runs"},
    {"auto_parallel_search_mode", "it is called search_mode"},
    {"all_reduce_fusion_config", "comm_fusion: {allreduce: {mode: index, config: [20, 35]}}"},
    {"strategy_ckpt_config", "strategy_ckpt_save_file: FILE, strategy_ckpt_load_file: FILE"},
    {"grad_accumulation_step", "training: {micro_batches: N}"},
    {"group_ckpt_save_file", "ranks that hold the same pieces are found in the files of a checkpoint"},
    {"auto_pipeline", "place: {rank: W} beside a block or an operator puts it on worker W"},
    {"pipeline_stages", "place: {rank: W} beside a block or an operator puts it on worker W"},
    {"pipeline_config", "micro-batches overlap among the workers of `place` by themselves"},
    {"enable_alltoall", "all_to_all is used wherever it is the cheapest"},
    {"loss_repeated_mean", "the gradient is always that of one loss, however often it is computed"},
    {"communi_parallel_mode", "collectives run beside kernels in every group; `--overlap off` does without"},
    {"parallel_optimizer_config",
     "gradient_accumulation_shard stands under parallel: itself; there is no threshold: a parameter with "
     "`parallel_optimizer: false` is exempt"},
    {"parallel_optimizer_threshold", "a parameter with `parallel_optimizer: false` is exempt, whatever its size"},
    {"optimizer_level", "zero: 1, 2 or 3 says what is in pieces"},
    {"optimizer_weight_shard_size", "enable_parallel_optimizer cuts states over all devices that hold the same part"},
};

/// Says so where the key was found to be unknown.
void explain_other_words(const YamlDocument& document, const YamlNode& node, std::vector<Diagnostic>& faults) {
  for (const YamlEntry& entry : node.entries) {
    for (const auto& [word, hint] : kOtherWords) {
      if (entry.key.text != word) continue;
      const SourcePlace place = document.place(entry.key);
      const auto found =
          std::find_if(faults.begin(), faults.end(), [&](const Diagnostic& fault) { return fault.place == place; });
      if (found != faults.end())
        *found = {place, fmt::format("parallel: there is no '{}' here", word), std::string(hint)};
    }
  }
}

/// The decay of a moment. With 1 it would stay zero, and so would what it is divided by, 1 - beta^step.
void read_decay(const OptionReader& reader, const char* key, double& value) {
  reader.number(key, value, 0, 1);
  if (value == 1) reader.refuse(*reader.find(key), key, "a number from 0 to below 1");
}

}  // namespace

TrainingOptions read_training(const YamlDocument& document, const YamlNode& node, std::vector<Diagnostic>& faults) {
  const OptionReader reader(document, node, "training", training_keys(), faults);
  TrainingOptions options;
  options.place = document.place(node);
  if (!node.is_map()) return options;
  if (const YamlNode* optimizer = reader.find("optimizer")) {
    const bool is_adamw = choice_value(*optimizer, {"AdamWeightDecay"}).has_value();  // MindSpore's name
    options.optimizer = is_adamw ? "adamw" : reader.choice("optimizer").value_or("");
  } else {
    reader.fault(node, "training: optimizer is missing; expected sgd, momentum, adam or adamw");
  }
  reader.number("learning_rate", options.learning_rate, 0, 1e308);
  reader.number("momentum", options.momentum, 0, 1);
  read_decay(reader, "beta1", options.beta1);
  read_decay(reader, "beta2", options.beta2);
  reader.number("eps", options.eps, 0, 1e308);
  reader.number("weight_decay", options.weight_decay, 0, 1e308);
  reader.number("clip_norm", options.clip_norm, 0, 1e308);
  options.micro_batches = reader.whole("micro_batches", 1, 1 << 20).value_or(1);
  if (const auto type = reader.choice("mixed_precision")) options.mixed_precision = parse_data_type(*type);
  if (const auto type = reader.choice("gradient_dtype")) options.gradient_dtype = parse_data_type(*type);
  if (const auto type = reader.choice("state_dtype")) options.state_dtype = parse_data_type(*type);
  reader.flag("master_copy", options.master_copy);
  options.recompute = reader.names("recompute");
  if (!options.optimizer.empty()) check_optimizer_keys(reader, options.optimizer);
  return options;
}

void check_keys_of_training(const YamlDocument& document, const YamlNode& parallel, std::vector<Diagnostic>& faults) {
  // Some may say what holds without them.
  constexpr std::pair<std::string_view, bool> kDefaults[] = {
      {"gradients_mean", true}, {"enable_parallel_optimizer", false}, {"keep_out_strategy", true}};
  for (const char* key : kOfTraining) {
    const YamlNode* node = parallel.find(key);
    if (node == nullptr) continue;
    const std::optional<bool> flag = flag_value(*node);
    if (flag && std::ranges::find(kDefaults, std::pair(std::string_view(key), *flag)) != std::end(kDefaults)) continue;
    const SourcePlace place = document.place(*node);
    const bool is_known = std::ranges::any_of(faults, [&](const Diagnostic& fault) { return fault.place == place; });
    if (is_known) continue;
    faults.push_back({place, fmt::format("parallel: {} is of training, and the file has no training section", key),
                      "training: {optimizer: sgd} trains the model"});
  }
}

ParallelOptions read_parallel(const YamlDocument& document, const YamlNode& node, std::vector<Diagnostic>& faults) {
  const OptionReader reader(document, node, "parallel", parallel_keys(), faults);
  explain_other_words(document, node, faults);
  ParallelOptions options;
  options.place = document.place(node);
  if (!node.is_map()) return options;
  if (const auto mode = reader.choice("parallel_mode")) {
    options.parallel_mode = *mode == "stand_alone"          ? ParallelMode::kStandAlone
                            : *mode == "data_parallel"      ? ParallelMode::kDataParallel
                            : *mode == "semi_auto_parallel" ? ParallelMode::kSemiAutoParallel
                            : *mode == "hybrid_parallel"    ? ParallelMode::kHybridParallel
                                                            : ParallelMode::kAutoParallel;
    options.parallel_mode_place = reader.place(*reader.find("parallel_mode"));
  }
  if (const auto mode = reader.choice("search_mode")) {
    options.search = *mode == "sharding_propagation"  ? "propagation"
                     : *mode == "dynamic_programming" ? "elimination"
                                                      : *mode;
    options.search_place = reader.place(*reader.find("search_mode"));
  }
  if (const auto count = reader.whole("device_num", 1, kMaxDevices)) {
    options.device_num = {*count, reader.place(*reader.find("device_num"))};
  }
  if (const auto count = reader.whole("workers", 1, kMaxDevices)) {
    options.workers = {*count, reader.place(*reader.find("workers"))};
  }
  options.level = static_cast<int>(reader.whole("level", 0, 2).value_or(0));
  options.gradients_mean = placed_flag(reader, "gradients_mean");
  options.gradient_fp32_sync = placed_flag(reader, "gradient_fp32_sync");
  check_gradient_options(reader, options);
  reader.flag("full_batch", options.full_batch);
  reader.flag("enable_parallel_optimizer", options.enable_parallel_optimizer);
  if (const YamlNode* key = reader.find("enable_parallel_optimizer")) {
    options.enable_parallel_optimizer_place = reader.place(*key);
  }
  read_zero(reader, options);
  read_gather_again(reader, options);
  options.fuses_attention = reader.choice("attention").value_or("") == "fused";
  options.uniform_layers = reader.choice("layers").value_or("") != "free";
  options.compat = reader.choice("compat").value_or("");
  options.keep_out_strategy = options.compat.empty();
  reader.flag("keep_out_strategy", options.keep_out_strategy);
  if (options.keep_out_strategy && !options.compat.empty()) {
    reader.fault(
        *reader.find("keep_out_strategy"),
        fmt::format("parallel: keep_out_strategy is true, but in training compat: {} puts data parallel in the "
                    "place of out_strategy",
                    options.compat),
        "keep one of them");
  }
  options.allows_uneven = options.compat.empty();
  reader.flag("uneven", options.allows_uneven);
  if (options.allows_uneven && !options.compat.empty()) {
    reader.fault(*reader.find("uneven"),
                 fmt::format("parallel: uneven is true, but under compat: {} all pieces are equal", options.compat),
                 "keep one of them");
  }
  if (const auto device = reader.choice("device")) options.device = {*device, reader.place(*reader.find("device"))};
  if (const YamlNode* data = reader.find("dataset_strategy")) {
    if (data->is_scalar() && (data->text == "data_parallel" || data->text == "full_batch")) {
      options.dataset_strategy = data->text;
    } else if (auto entries = read_entries(document, *data, "parallel: dataset_strategy", faults)) {
      options.dataset_strategy = "entries";
      options.dataset_entries = std::move(*entries);
    }
    check_full_batch(reader, *data, options);
  }
  options.strategy_save_file = reader.text("strategy_ckpt_save_file");
  if (const YamlNode* file = reader.find("strategy_ckpt_load_file")) {
    options.strategy_load_file = {reader.text("strategy_ckpt_load_file"), reader.place(*file)};
  }
  const bool is_searched =
      options.parallel_mode == ParallelMode::kAutoParallel || options.parallel_mode == ParallelMode::kSemiAutoParallel;
  if (!options.strategy_load_file.value.empty() && !is_searched) {
    reader.fault(*reader.find("strategy_ckpt_load_file"),
                 "parallel: strategy_ckpt_load_file is for auto_parallel and semi_auto_parallel; other modes use no "
                 "strategies");
  }
  read_mesh(reader, options);
  options.comm_fusion = read_comm_fusion(reader);
  read_own_of_devices(reader, options);
  return options;
}

}  // namespace shardplan
