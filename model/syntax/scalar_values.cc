#include "model/syntax/scalar_values.h"

#include "model/syntax/expression.h"

namespace shardplan {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// "Momentum" of "nn.Momentum".
std::string_view behind_dot(std::string_view text) { return text.substr(text.rfind('.') + 1); }

}  // namespace

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
  const std::string text = lower(behind_dot(node.text));
  const std::optional<DataType> type = data_type_value(node.text);
  for (const std::string& word : words) {
    if (node.text == word || text == lower(word) || (type && to_string(*type) == word)) return word;
  }
  return std::nullopt;
}

std::optional<DataType> data_type_value(const std::string& text) {
  if (const std::optional<DataType> type = parse_data_type(text)) return type;
  const std::string name = lower(behind_dot(text));
  if (name == "bool_") return DataType::kBool;
  for (const DataType type : {DataType::kF64, DataType::kF32, DataType::kF16, DataType::kBF16, DataType::kF8E4M3,
                              DataType::kI64, DataType::kI32, DataType::kI8, DataType::kU8, DataType::kBool}) {
    if (name == lower(mindspore_name(type))) return type;
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
