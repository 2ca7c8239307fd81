#include "model/syntax/scalar_values.h"

#include "model/syntax/expression.h"

namespace shardplan {

bool is_none(const YamlNode& node) { return node.is_null() || (node.is_scalar() && node.text == "None"); }

std::optional<bool> flag_value(const YamlNode& node) {
  if (!node.is_scalar() || (node.text != "true" && node.text != "false")) return std::nullopt;
  return node.text == "true";
}

std::optional<std::int64_t> whole_value(const YamlNode& node) {
  if (!node.is_scalar()) return std::nullopt;
  try {
    return Expression::parse(node.text).literal();
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace shardplan
