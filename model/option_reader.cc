#include "model/option_reader.h"

#include <algorithm>

#include "model/syntax/expression.h"
#include "model/syntax/scalar_values.h"

namespace shardplan {

OptionReader::OptionReader(const YamlDocument& document, const YamlNode& node, const char* section,
                           const KeySpecs& keys, std::vector<Diagnostic>& faults)
    : document_(document), node_(node), section_(section), keys_(keys), faults_(faults) {
  if (!node.is_map()) {
    fault(node, fmt::format("{} is {}; expected a map", section, describe(node)));
  } else {
    check_model_keys(document, node, keys, section, faults);
  }
}

void OptionReader::fault(const YamlNode& node, std::string message, std::string hint) const {
  faults_.push_back({document_.place(node), std::move(message), std::move(hint)});
}

void OptionReader::refuse(const YamlNode& node, const std::string& key, const std::string& expected) const {
  fault(node, fmt::format("{}: {} is {}; expected {}", section_, key, describe(node), expected));
}

std::optional<std::string> OptionReader::choice(const char* key) const {
  const YamlNode* node = find(key);
  if (!node) return std::nullopt;
  const auto spec = std::find_if(keys_.begin(), keys_.end(), [&](const KeySpec& s) { return s.name == key; });
  const std::optional<std::string> found = choice_value(*node, spec->choices);
  if (!found) refuse(*node, key, either(spec->choices));
  return found;
}

void OptionReader::flag(const char* key, bool& value) const {
  const YamlNode* node = find(key);
  if (!node) return;
  if (const std::optional<bool> flag = flag_value(*node)) {
    value = *flag;
  } else {
    refuse(*node, key, "true or false");
  }
}

void OptionReader::number(const char* key, double& value, double low, double high) const {
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

std::optional<std::int64_t> OptionReader::whole(const char* key, std::int64_t low, std::int64_t high) const {
  const YamlNode* node = find(key);
  return node ? whole(*node, key, low, high) : std::nullopt;
}

std::optional<std::int64_t> OptionReader::whole(const YamlNode& node, const std::string& key, std::int64_t low,
                                                std::int64_t high) const {
  const std::optional<std::int64_t> value = whole_value(node);
  if (value && *value >= low && *value <= high) return value;
  refuse(node, key, fmt::format("a whole number from {} to {}", low, high));
  return std::nullopt;
}

std::string OptionReader::text(const char* key) const {
  const YamlNode* node = find(key);
  if (!node) return {};
  if (!node->is_scalar() || node->text.empty()) refuse(*node, key, "a text");
  return node->text;
}

std::vector<std::string> OptionReader::names(const char* key) const {
  std::vector<std::string> names;
  const YamlNode* node = find(key);
  if (!node) return names;
  const auto add = [&](const YamlNode& item) {
    if (item.is_scalar() && !item.text.empty()) {
      names.push_back(item.text);
    } else {
      refuse(item, key, "a list of names");
    }
  };
  if (node->is_sequence()) {
    for (const YamlNode& item : node->items) add(item);
  } else {
    add(*node);
  }
  return names;
}

}  // namespace shardplan
