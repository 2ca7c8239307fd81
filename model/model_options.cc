#include "model/model_options.h"

#include <algorithm>

#include "model/syntax/expression.h"
#include "model/syntax/model_keys.h"
#include "model/syntax/scalar_values.h"
#include "model/syntax/strategy_syntax.h"

// Each option is one call that names its key, so that the two functions at the end read like the sections themselves.
// A value that is wrong is reported and keeps its default: the rest of the file is checked all the same.

namespace shardplan {
namespace {

class OptionReader {
 public:
  OptionReader(const YamlDocument& document, const YamlNode& node, const char* section, const KeySpecs& keys,
               std::vector<Diagnostic>& faults)
      : document_(document), node_(node), section_(section), keys_(keys), faults_(faults) {
    if (!node.is_map()) {
      fault(node, fmt::format("{} is {}; expected a map", section, describe(node)));
    } else {
      check_keys(document, node, key_names(keys), section, faults);
    }
  }

  const YamlNode* find(const char* key) const { return node_.find(key); }
  void fault(const YamlNode& node, std::string message, std::string hint = "") const {
    faults_.push_back({document_.place(node), std::move(message), std::move(hint)});
  }
  void refuse(const YamlNode& node, const char* key, const std::string& expected) const {
    fault(node, fmt::format("{}: {} is {}; expected {}", section_, key, describe(node), expected));
  }

  /// One of the key's choices.
  std::optional<std::string> choice(const char* key) const {
    const YamlNode* node = find(key);
    if (!node) return std::nullopt;
    const auto spec = std::find_if(keys_.begin(), keys_.end(), [&](const KeySpec& s) { return s.name == key; });
    const std::vector<std::string>& choices = spec->choices;
    if (node->is_scalar() && std::find(choices.begin(), choices.end(), node->text) != choices.end()) return node->text;
    std::string expected;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      expected += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
    }
    refuse(*node, key, expected);
    return std::nullopt;
  }

  void flag(const char* key, bool& value) const {
    const YamlNode* node = find(key);
    if (!node) return;
    if (const std::optional<bool> flag = flag_value(*node)) {
      value = *flag;
    } else {
      refuse(*node, key, "true or false");
    }
  }

  void number(const char* key, double& value, double low, double high) const {
    const YamlNode* node = find(key);
    if (!node) return;
    try {
      if (node->is_scalar()) {
        const Expression expression = Expression::parse(node->text);
        const double found =
            expression.evaluate_real([](std::string_view name) -> std::int64_t { throw InputError({}, "{}", name); });
        if (found >= low && found <= high) {
          value = found;
          return;
        }
      }
    } catch (const InputError&) {
    }
    refuse(*node, key,
           high > 1e300 ? fmt::format("a number, at least {}", low) : fmt::format("a number from {} to {}", low, high));
  }

  std::optional<std::int64_t> whole(const char* key, std::int64_t low, std::int64_t high) const {
    const YamlNode* node = find(key);
    return node ? whole(*node, key, low, high) : std::nullopt;
  }
  std::optional<std::int64_t> whole(const YamlNode& node, const char* key, std::int64_t low, std::int64_t high) const {
    const std::optional<std::int64_t> value = whole_value(node);
    if (value && *value >= low && *value <= high) return value;
    refuse(node, key, fmt::format("a whole number from {} to {}", low, high));
    return std::nullopt;
  }

  std::string text(const char* key) const {
    const YamlNode* node = find(key);
    if (!node) return {};
    if (!node->is_scalar() || node->text.empty()) refuse(*node, key, "a text");
    return node->text;
  }

 private:
  const YamlDocument& document_;
  const YamlNode& node_;
  const std::string section_;
  const KeySpecs& keys_;
  std::vector<Diagnostic>& faults_;
};

constexpr std::int64_t kMaxDevices = 1 << 24;

void read_mesh(const OptionReader& reader, ParallelOptions& options) {
  const YamlNode* node = reader.find("mesh");
  if (!node) return;
  if (node->is_scalar() && node->text == "auto") {
    options.mesh_auto = true;
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
  if (options.device_num && devices != *options.device_num) {
    reader.fault(*node, fmt::format("parallel: mesh has {} devices, device_num is {}", devices, *options.device_num));
  }
}

void read_comm_fusion(const OptionReader& reader, ParallelOptions& options) {
  const YamlNode* node = reader.find("comm_fusion");
  if (!node) return;
  if (!node->is_map()) {
    reader.refuse(*node, "comm_fusion", "a map as in {allreduce: {mode: size, config: 32}}");
    return;
  }
  for (const YamlEntry& entry : node->entries) {
    const std::string& kind = entry.key.text;
    const YamlNode* mode = entry.value.find("mode");
    if (kind != "allreduce" && kind != "allgather" && kind != "reducescatter") {
      reader.fault(entry.key, fmt::format("parallel: comm_fusion: unknown key '{}'", kind),
                   "allreduce, allgather or reducescatter");
      continue;
    }
    if (!mode || (mode->text != "auto" && mode->text != "size" && mode->text != "index")) {
      reader.fault(mode ? *mode : entry.key,
                   fmt::format("parallel: comm_fusion: {}: mode is {}; expected auto, size or index", kind,
                               mode ? describe(*mode) : "missing"));
      continue;
    }
    CommFusion fusion;
    fusion.mode = mode->text;
    for (const YamlEntry& key : entry.value.entries) {
      if (key.key.text != "mode" && key.key.text != "config") {
        reader.fault(key.key, fmt::format("parallel: comm_fusion: unknown key '{}'", key.key.text), "mode or config");
      }
    }
    const YamlNode* config = entry.value.find("config");
    const auto add = [&](const YamlNode& item) {
      const auto value = reader.whole(item, "comm_fusion", 0, 1 << 30);
      if (value) fusion.config.push_back(*value);
    };
    if (config && config->is_sequence()) {
      for (const YamlNode& item : config->items) add(item);
    } else if (config && !config->is_null()) {
      add(*config);
    }
    if (fusion.mode == "size" && fusion.config.size() != 1) {
      reader.fault(entry.key, fmt::format("parallel: comm_fusion: {}: mode size needs config, in MB", kind));
      continue;
    }
    options.comm_fusion.emplace(kind, std::move(fusion));
  }
}

}  // namespace

TrainingOptions read_training(const YamlDocument& document, const YamlNode& node, std::vector<Diagnostic>& faults) {
  const OptionReader reader(document, node, "training", training_keys(), faults);
  TrainingOptions options;
  options.place = document.place(node);
  if (!node.is_map()) return options;
  if (reader.find("optimizer")) {
    options.optimizer = reader.choice("optimizer").value_or("");
  } else {
    reader.fault(node, "training: optimizer is missing; expected sgd, momentum, adam or adamw");
  }
  reader.number("learning_rate", options.learning_rate, 0, 1e308);
  reader.number("momentum", options.momentum, 0, 1);
  reader.number("beta1", options.beta1, 0, 1);
  reader.number("beta2", options.beta2, 0, 1);
  reader.number("eps", options.eps, 0, 1e308);
  reader.number("weight_decay", options.weight_decay, 0, 1e308);
  reader.number("clip_norm", options.clip_norm, 0, 1e308);
  options.micro_batches = reader.whole("micro_batches", 1, 1 << 20).value_or(1);
  if (const auto type = reader.choice("mixed_precision")) options.mixed_precision = parse_data_type(*type);
  if (const YamlNode* recompute = reader.find("recompute")) {
    const auto add = [&](const YamlNode& item) {
      if (item.is_scalar() && !item.text.empty()) {
        options.recompute.push_back(item.text);
      } else {
        reader.refuse(item, "recompute", "a list of names");
      }
    };
    if (recompute->is_sequence()) {
      for (const YamlNode& item : recompute->items) add(item);
    } else {
      add(*recompute);
    }
  }
  return options;
}

ParallelOptions read_parallel(const YamlDocument& document, const YamlNode& node, std::vector<Diagnostic>& faults) {
  const OptionReader reader(document, node, "parallel", parallel_keys(), faults);
  ParallelOptions options;
  options.place = document.place(node);
  if (!node.is_map()) return options;
  if (const auto mode = reader.choice("parallel_mode")) {
    options.parallel_mode = *mode == "stand_alone"          ? ParallelMode::kStandAlone
                            : *mode == "data_parallel"      ? ParallelMode::kDataParallel
                            : *mode == "semi_auto_parallel" ? ParallelMode::kSemiAutoParallel
                            : *mode == "hybrid_parallel"    ? ParallelMode::kHybridParallel
                                                            : ParallelMode::kAutoParallel;
  }
  if (const auto mode = reader.choice("search_mode")) {
    options.search = *mode == "sharding_propagation"  ? "propagation"
                     : *mode == "dynamic_programming" ? "elimination"
                                                      : *mode;
  }
  options.device_num = reader.whole("device_num", 1, kMaxDevices);
  options.level = static_cast<int>(reader.whole("level", 0, 2).value_or(0));
  reader.flag("gradients_mean", options.gradients_mean);
  reader.flag("gradient_fp32_sync", options.gradient_fp32_sync);
  reader.flag("parameter_broadcast", options.parameter_broadcast);
  reader.flag("full_batch", options.full_batch);
  reader.flag("enable_parallel_optimizer", options.enable_parallel_optimizer);
  reader.flag("keep_out_strategy", options.keep_out_strategy);
  options.compat = reader.choice("compat").value_or("");
  if (options.compat == "mindspore-1.7") options.keep_out_strategy = false;
  options.strategy_ckpt_save_file = reader.text("strategy_ckpt_save_file");
  options.strategy_ckpt_load_file = reader.text("strategy_ckpt_load_file");
  options.device = reader.choice("device").value_or("");
  if (const YamlNode* data = reader.find("dataset_strategy")) {
    if (data->is_scalar() && (data->text == "data_parallel" || data->text == "full_batch")) {
      options.dataset_strategy = data->text;
    } else if (auto entries = read_entries(document, *data, "parallel: dataset_strategy", faults)) {
      options.dataset_strategy = "entries";
      options.dataset_entries = std::move(*entries);
    }
  }
  read_mesh(reader, options);
  read_comm_fusion(reader, options);
  return options;
}

}  // namespace shardplan
