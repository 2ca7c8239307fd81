#include "model/syntax/settings.h"

#include "model/syntax/bracket_text.h"
#include "model/syntax/model_keys.h"
#include "model/syntax/scalar_values.h"
#include "model/syntax/strategy_syntax.h"

namespace shardplan {
namespace {

constexpr int kMostWorkers = 1'000'000;
constexpr int kMostFusionId = 1'000'000;

/// Reads the settings in one map. A value that is wrong is a fault and leaves its field empty.
class SettingsReader {
 public:
  SettingsReader(const YamlDocument& document, const std::string& owner, std::vector<Diagnostic>& faults)
      : document_(document), owner_(owner), faults_(faults) {}

  void read(const std::string& key, const YamlNode& value, Settings& settings) {
    where_ = fmt::format("{}: {}", owner_, key);
    if (key == "in_strategy") {
      set(settings.in_strategy, value, read_entries(document_, value, where_, faults_));
    } else if (key == "out_strategy") {
      set(settings.out_strategy, value, read_entries(document_, value, where_, faults_));
    } else if (key == "strategy") {
      set(settings.strategy, value, read_entry(document_, value, where_, faults_));
    } else if (key == "level") {
      set(settings.level, value, number(value, 0, 2));
    } else if (key == "comm_fusion") {
      set(settings.comm_fusion, value, number(value, 0, kMostFusionId));
    } else if (key == "recompute") {
      set(settings.recompute, value, flag(value));
    } else if (key == "gather_again") {
      set(settings.gather_again, value, flag(value));
    } else if (key == "compiled") {
      set(settings.compiled, value, flag(value));
    } else if (key == "requires_grad") {
      set(settings.requires_grad, value, flag(value));
    } else if (key == "parallel_mode") {
      set(settings.parallel_mode, value, mode(value));
    } else if (key == "device") {
      set(settings.device, value, device(value));
    } else if (key == "place") {
      set(settings.worker, value, worker(value));
    } else if (key == "gradient_strategy") {
      set(settings.gradient_strategy, value, read_entry(document_, value, where_, faults_));
    } else if (key == "state_strategy") {
      set(settings.state_strategy, value, read_entry(document_, value, where_, faults_));
    } else if (key == "gradient_dtype") {
      set(settings.gradient_dtype, value, type(value, gradient_types()));
    } else if (key == "state_dtype") {
      set(settings.state_dtype, value, type(value, state_types()));
    } else if (key == "parallel_optimizer") {
      set(settings.parallel_optimizer, value, flag(value));
    }
  }

 private:
  template <class Field, class Value>
  void set(Field& field, const YamlNode& node, std::optional<Value> value) {
    if (value) field = {std::move(*value), document_.place(node)};
  }

  void fault(const YamlNode& node, std::string message) {
    faults_.push_back({document_.place(node), std::move(message), ""});
  }

  std::optional<int> number(const YamlNode& node, int low, int high) {
    const std::optional<std::int64_t> value = whole_value(node);
    if (value && *value >= low && *value <= high) return static_cast<int>(*value);
    fault(node, fmt::format("{} is {}; expected a whole number from {} to {}", where_, describe(node), low, high));
    return std::nullopt;
  }

  std::optional<bool> flag(const YamlNode& node) {
    const std::optional<bool> value = flag_value(node);
    if (!value) fault(node, fmt::format("{} is {}; expected true or false", where_, describe(node)));
    return value;
  }

  std::optional<ParallelMode> mode(const YamlNode& node) {
    const auto name = choice_value(node, {"data_parallel", "semi_auto_parallel", "auto_parallel"});
    if (!name) {
      fault(node, fmt::format("{} is {}; inside a model it may be data_parallel, semi_auto_parallel or auto_parallel",
                              where_, describe(node)));
      return std::nullopt;
    }
    return *name == "data_parallel"        ? ParallelMode::kDataParallel
           : *name == "semi_auto_parallel" ? ParallelMode::kSemiAutoParallel
                                           : ParallelMode::kAutoParallel;
  }

  std::optional<std::string> device(const YamlNode& node) {
    const std::optional<std::string> name = choice_value(node, device_names());
    if (!name) {
      fault(node, fmt::format("{} is {}; expected {}", where_, describe(node), either(device_names())));
    }
    return name;
  }

  std::optional<DataType> type(const YamlNode& node, const std::vector<std::string>& types) {
    const std::optional<std::string> name = choice_value(node, types);
    if (name) return parse_data_type(*name);
    fault(node, fmt::format("{} is {}; expected {}", where_, describe(node), either(types)));
    return std::nullopt;
  }

  /// {role: MS_WORKER, rank: 3}, or MindSpore's two arguments, ("MS_WORKER", 3).
  std::optional<int> worker(const YamlNode& node) {
    if (node.is_scalar() && is_in_brackets(node.text)) {
      try {
        return worker(parse_brackets(node.text, node));
      } catch (const InputError& error) {
        fault(node, fmt::format("{}: {}: {}", where_, describe(node), error.diagnostics()[0].message));
        return std::nullopt;
      }
    }
    const bool is_pair = node.is_sequence() && node.items.size() == 2;
    if (!node.is_map() && !is_pair) {
      fault(node, fmt::format("{} is {}; expected {{role: MS_WORKER, rank: 0}}", where_, describe(node)));
      return std::nullopt;
    }
    if (node.is_map()) check_keys(document_, node, key_names(place_keys()), where_, faults_);
    const YamlNode* role = is_pair ? &node.items[0] : node.find("role");
    const YamlNode* rank = is_pair ? &node.items[1] : node.find("rank");
    if (role && role->text != "MS_WORKER") {
      fault(*role, fmt::format("{}: role is {}; expected MS_WORKER", where_, describe(*role)));
      return std::nullopt;
    }
    if (!rank) {
      fault(node, fmt::format("{} has no rank", where_));
      return std::nullopt;
    }
    where_ += ": rank";
    return number(*rank, 0, kMostWorkers);
  }

  const YamlDocument& document_;
  const std::string& owner_;
  std::vector<Diagnostic>& faults_;
  std::string where_;  // "fc: level"
};

}  // namespace

Settings read_settings(const YamlDocument& document, const YamlNode& node, const std::string& where,
                       std::vector<Diagnostic>& faults) {
  Settings settings;
  SettingsReader reader(document, where, faults);
  for (const YamlEntry& entry : node.entries) reader.read(entry.key.text, entry.value, settings);
  return settings;
}

std::string read_set_option(const std::string& name, const std::string& entry, Settings& settings,
                            std::vector<Diagnostic>& faults) {
  const YamlDocument document{"--set", {}};
  YamlNode value;
  value.kind = entry == "null" ? YamlNode::Kind::kNull : YamlNode::Kind::kScalar;
  value.text = entry;
  for (const std::string ending :
       {"in_strategy", "out_strategy", "strategy", "level", "gather_again", "requires_grad", "gradient_strategy",
        "state_strategy", "gradient_dtype", "state_dtype", "parallel_optimizer"}) {
    if (!name.ends_with("." + ending)) continue;
    YamlNode map;
    map.kind = YamlNode::Kind::kMap;
    map.entries.push_back({YamlNode{}, value});
    map.entries[0].key.text = ending;
    const std::string owner = name.substr(0, name.size() - ending.size() - 1);
    settings = read_settings(document, map, owner, faults);
    return owner;
  }
  // A list whose items are entries themselves is the in_strategy.
  bool is_list = false;
  if (value.is_scalar() && !is_none(value) &&
      !(entry.starts_with("[") && entry.find("] ") != std::string::npos &&
        entry.find("unreduced") != std::string::npos)) {
    const std::optional<YamlNode> list = read_brackets(document, value, name, faults);
    if (!list) return name;
    for (const YamlNode& item : list->items) is_list = is_list || item.is_sequence() || is_none(item);
  }
  if (is_list) {
    if (auto entries = read_entries(document, value, name, faults)) settings.in_strategy = {*entries, {"--set", 0, 0}};
  } else if (auto one = read_entry(document, value, name, faults)) {
    settings.strategy = {*one, {"--set", 0, 0}};
  }
  return name;
}

}  // namespace shardplan
