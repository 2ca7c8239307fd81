#include "model/syntax/scalar_values.h"

#include "model/syntax/expression.h"

namespace shardplan {

bool is_none(const YamlNode& node) { return node.is_null() || (node.is_scalar() && node.text == "None"); }

std::optional<bool> flag_value(const YamlNode& node) {
  if (!node.is_scalar()) return std::nullopt;
  if (node.text == "true" || node.text == "True") return true;
  if (node.text == "false" || node.text == "False") return false;
  return std::nullopt;
}

std::optional<std::int64_t> whole_value(const YamlNode& node) {
  if (!node.is_scalar()) return std::nullopt;
  try {
    return Expression::parse(node.text).literal();
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::optional<std::string> choice_value(const YamlNode& node, const std::vector<std::string>& words) {
  if (!node.is_scalar()) return std::nullopt;
  const auto lower = [](std::string_view text) {
    std::string result(text);
    for (char& c : result) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return result;
  };
  const std::string text = lower(std::string_view(node.text).substr(node.text.rfind('.') + 1));
  for (const std::string& word : words) {
    if (node.text == word || text == lower(word)) return word;
  }
  return std::nullopt;
}

std::string either(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return text;
}

}  // namespace shardplan
