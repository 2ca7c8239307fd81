#include "model/syntax/strategy_syntax.h"

#include <algorithm>

#include "model/syntax/bracket_text.h"
#include "model/syntax/expression.h"
#include "model/syntax/scalar_values.h"

namespace shardplan {
namespace {

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

}  // namespace

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

bool cuts(const StrategyEntry& entry) {
  const auto begins_axis = [](char c) { return is_name(std::string_view(&c, 1)); };
  switch (entry.kind) {
    case StrategyEntry::Kind::kTuple:
      return std::ranges::any_of(entry.tuple, [](std::int64_t pieces) { return pieces != 1; });
    case StrategyEntry::Kind::kLayout:
      return std::ranges::any_of(entry.layout, begins_axis);
    default:
      return entry.kind == StrategyEntry::Kind::kDataParallel;
  }
}

}  // namespace shardplan
