#include "model/syntax/strategy_syntax.h"

#include <algorithm>
#include <string_view>

#include "model/syntax/bracket_text.h"
#include "model/syntax/model_keys.h"
#include "model/syntax/scalar_values.h"

namespace shardplan {
namespace {

/// A number in [low, high], else a fault.
std::optional<int> read_number(const YamlDocument& document, const YamlNode& node, const std::string& where, int low,
                               int high, std::vector<Diagnostic>& faults) {
  const std::optional<std::int64_t> value = whole_value(node);
  if (value && *value >= low && *value <= high) return static_cast<int>(*value);
  faults.push_back({document.place(node),
                    fmt::format("{} is {}; expected a whole number from {} to {}", where, describe(node), low, high),
                    ""});
  return std::nullopt;
}

std::optional<bool> read_flag(const YamlDocument& document, const YamlNode& node, const std::string& where,
                              std::vector<Diagnostic>& faults) {
  const std::optional<bool> flag = flag_value(node);
  if (!flag) {
    faults.push_back(
        {document.place(node), fmt::format("{} is {}; expected true or false", where, describe(node)), ""});
  }
  return flag;
}

constexpr const char* kEntryForms =
    "an entry is [2, 4] (pieces per dimension), [{dp}, {mp}] (axes per dimension),\n"
    "null (data parallel) or [] (follows)";

/// "{dp, mp}" of the map {dp, mp}; nothing if it is no set of axes.
std::optional<std::string> axes_text(const YamlNode& node) {
  if (!node.is_map()) return std::nullopt;
  std::string text = "{";
  for (const YamlEntry& entry : node.entries) {
    if (entry.value.kind != YamlNode::Kind::kEmpty) return std::nullopt;
    if (text.size() > 1) text += ", ";
    text += entry.key.text;
  }
  return text + "}";
}

/// What a scalar holds in brackets: Python's tuples, text in quotes, the text of --set.
std::optional<YamlNode> read_brackets(const YamlDocument& document, const YamlNode& node, const std::string& where,
                                      std::vector<Diagnostic>& faults) {
  if (!is_in_brackets(node.text)) {
    faults.push_back({document.place(node),
                      fmt::format("{} is {}; expected entries of a strategy", where, describe(node)), kEntryForms});
    return std::nullopt;
  }
  try {
    return parse_brackets(node.text, node);
  } catch (const InputError& error) {
    faults.push_back({document.place(node),
                      fmt::format("{}: {}: {}", where, describe(node), error.diagnostics()[0].message), kEntryForms});
    return std::nullopt;
  }
}

}  // namespace

std::optional<StrategyEntry> read_entry(const YamlDocument& document, const YamlNode& node, const std::string& where,
                                        std::vector<Diagnostic>& faults) {
  StrategyEntry entry;
  entry.place = document.place(node);
  if (is_none(node)) {
    entry.kind = StrategyEntry::Kind::kDataParallel;
    return entry;
  }
  if (node.is_scalar()) {
    if (node.text.starts_with("[") && node.text.find('{') != std::string::npos) {
      entry.kind = StrategyEntry::Kind::kLayout;
      entry.layout = node.text;
      return entry;
    }
    const std::optional<YamlNode> list = read_brackets(document, node, where, faults);
    return list ? read_entry(document, *list, where, faults) : std::nullopt;
  }
  const auto refuse = [&](const YamlNode& part, const std::string& message) {
    faults.push_back({document.place(part), message, kEntryForms});
    return std::nullopt;
  };
  if (!node.is_sequence())
    return refuse(node, fmt::format("{}: an entry is {}; expected a list", where, describe(node)));
  if (node.items.empty()) return entry;
  if (node.items[0].is_map()) {
    entry.kind = StrategyEntry::Kind::kLayout;
    for (const YamlNode& item : node.items) {
      const std::optional<std::string> axes = axes_text(item);
      if (!axes)
        return refuse(item, fmt::format("{}: {} in a layout; expected axes, as in {{dp, mp}}", where, describe(item)));
      entry.layout += (entry.layout.empty() ? "[" : ", ") + *axes;
    }
    entry.layout += "]";
    return entry;
  }
  entry.kind = StrategyEntry::Kind::kTuple;
  for (const YamlNode& item : node.items) {
    const std::optional<std::int64_t> pieces = whole_value(item);
    if (!pieces || *pieces < 1) {
      return refuse(item, fmt::format("{}: {} pieces; expected a whole number, at least 1", where, describe(item)));
    }
    entry.tuple.push_back(*pieces);
  }
  return entry;
}

std::optional<std::vector<StrategyEntry>> read_entries(const YamlDocument& document, const YamlNode& node,
                                                       const std::string& where, std::vector<Diagnostic>& faults) {
  if (node.is_scalar() && !is_none(node)) {
    const std::optional<YamlNode> list = read_brackets(document, node, where, faults);
    return list ? read_entries(document, *list, where, faults) : std::nullopt;
  }
  const bool is_one_entry =
      node.is_sequence() && !node.items.empty() && (whole_value(node.items[0]).has_value() || node.items[0].is_map());
  if (!node.is_sequence() || is_one_entry) {
    faults.push_back({document.place(node),
                      fmt::format("{} is {}; expected a list with one entry per tensor, as in [[1, 8]]", where,
                                  is_one_entry ? "one entry" : describe(node)),
                      kEntryForms});
    return std::nullopt;
  }
  std::vector<StrategyEntry> entries;
  bool is_good = true;
  for (const YamlNode& item : node.items) {
    std::optional<StrategyEntry> entry = read_entry(document, item, where, faults);
    if (entry) {
      entries.push_back(std::move(*entry));
    } else {
      is_good = false;
    }
  }
  return is_good ? std::optional(std::move(entries)) : std::nullopt;
}

Settings read_settings(const YamlDocument& document, const YamlNode& node, const std::string& where,
                       std::vector<Diagnostic>& faults) {
  Settings settings;
  const auto set = [&](auto& field, const YamlNode& value, auto read) {
    if (read) field = {std::move(*read), document.place(value)};
  };
  for (const YamlEntry& entry : node.entries) {
    const std::string& key = entry.key.text;
    const YamlNode& value = entry.value;
    const std::string what = fmt::format("{}: {}", where, key);
    if (key == "in_strategy") {
      set(settings.in_strategy, value, read_entries(document, value, what, faults));
    } else if (key == "out_strategy") {
      set(settings.out_strategy, value, read_entries(document, value, what, faults));
    } else if (key == "strategy") {
      set(settings.strategy, value, read_entry(document, value, what, faults));
    } else if (key == "level") {
      set(settings.level, value, read_number(document, value, what, 0, 2, faults));
    } else if (key == "comm_fusion") {
      set(settings.comm_fusion, value, read_number(document, value, what, 0, 1'000'000, faults));
    } else if (key == "recompute") {
      set(settings.recompute, value, read_flag(document, value, what, faults));
    } else if (key == "parallel_mode") {
      if (value.text == "data_parallel") {
        settings.parallel_mode = {ParallelMode::kDataParallel, document.place(value)};
      } else if (value.text == "semi_auto_parallel") {
        settings.parallel_mode = {ParallelMode::kSemiAutoParallel, document.place(value)};
      } else if (value.text == "auto_parallel") {
        settings.parallel_mode = {ParallelMode::kAutoParallel, document.place(value)};
      } else {
        faults.push_back({document.place(value),
                          fmt::format("{} is {}; inside a model it may be data_parallel, semi_auto_parallel or "
                                      "auto_parallel",
                                      what, describe(value)),
                          ""});
      }
    } else if (key == "device") {
      if (value.text == "Ascend" || value.text == "GPU") {
        settings.device = {value.text, document.place(value)};
      } else {
        faults.push_back(
            {document.place(value), fmt::format("{} is {}; expected Ascend or GPU", what, describe(value)), ""});
      }
    } else if (key == "place") {
      if (!value.is_map()) {
        faults.push_back({document.place(value),
                          fmt::format("{} is {}; expected {{role: MS_WORKER, rank: 0}}", what, describe(value)), ""});
        continue;
      }
      check_keys(document, value, key_names(place_keys()), what, faults);
      const YamlNode* role = value.find("role");
      if (role && role->text != "MS_WORKER") {
        faults.push_back(
            {document.place(*role), fmt::format("{}: role is {}; expected MS_WORKER", what, describe(*role)), ""});
      }
      const YamlNode* rank = value.find("rank");
      if (rank) {
        const std::optional<int> worker = read_number(document, *rank, what + ": rank", 0, 1'000'000, faults);
        if (worker) settings.worker = {*worker, document.place(value)};
      } else {
        faults.push_back({document.place(value), fmt::format("{} has no rank", what), ""});
      }
    }
  }
  return settings;
}

std::string read_set_option(const std::string& name, const std::string& entry, Settings& settings,
                            std::vector<Diagnostic>& faults) {
  const YamlDocument document{"--set", {}};
  YamlNode value;
  value.kind = entry == "null" ? YamlNode::Kind::kNull : YamlNode::Kind::kScalar;
  value.text = entry;
  for (const std::string ending : {"in_strategy", "out_strategy", "strategy", "level"}) {
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

std::string to_string(const StrategyEntry& entry) {
  switch (entry.kind) {
    case StrategyEntry::Kind::kTuple:
      return fmt::format("[{}]", fmt::join(entry.tuple, ", "));
    case StrategyEntry::Kind::kLayout:
      return entry.layout;
    case StrategyEntry::Kind::kDataParallel:
      return "null";
    case StrategyEntry::Kind::kFollow:
      return "[]";
  }
  return {};
}

bool means_the_same(const StrategyEntry& a, const StrategyEntry& b) {
  return a.kind == b.kind && a.tuple == b.tuple && a.layout == b.layout;
}

}  // namespace shardplan
