#include "report/catalogue_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace shardplan {
namespace {

/// "... m k, k n -> ... m n; k: sum" with what is said of the factors put apart.
std::string rule_line(const std::string& rule) {
  const std::size_t end = rule.find(';');
  if (end == std::string::npos) return rule;
  return fmt::format("{}          {}; all others pass through", rule.substr(0, end), rule.substr(end + 2));
}

std::string flops_text(const OperatorType& type) {
  if (type.flops_per_point == 0) return "none, moves bytes";
  if (type.rule == find_operator_type("MatMul")->rule) return "2 m k n";
  return fmt::format("{} per point of all factors", type.flops_per_point);
}

}  // namespace

std::string catalogue_report() {
  std::size_t width = 0;
  std::size_t count = 0;
  for (const OperatorType& type : operator_catalogue()) {
    if (type.is_internal) continue;
    width = std::max(width, type.name.size());
    ++count;
  }
  std::string text;
  for (const OperatorType& type : operator_catalogue()) {
    if (type.is_internal) continue;
    text += fmt::format("{:<{}}  {}{}\n", type.name, width, type.rule_text.empty() ? "" : type.rule_text,
                        type.gradient != nullptr ? "" : "        (no gradient)");
  }
  return text + fmt::format("{} operators\n", count);
}

std::string operator_report(const OperatorType& type) {
  std::string text =
      fmt::format("{}({}) -> {}", type.name, fmt::join(type.operand_names, ", "), fmt::join(type.result_names, ", "));
  std::vector<std::string> values;
  std::size_t width = 0;
  for (const AttributeSpec& attribute : type.attributes) {
    values.push_back(attribute.name);
    if (attribute.standard) values.back() += " = " + to_string(*attribute.standard);
    width = std::max(width, attribute.name.size());
  }
  if (!values.empty()) text += fmt::format("        {}", fmt::join(values, ", "));
  text += fmt::format("\n  rule      {}\n", rule_line(type.rule_text));
  if (!type.partial_text.empty()) text += fmt::format("  {}\n", type.partial_text);
  for (std::size_t begin = 0; begin < type.notes.size();) {
    const std::size_t end = std::min(type.notes.find('\n', begin), type.notes.size());
    text += fmt::format("  {}\n", type.notes.substr(begin, end - begin));
    begin = end + 1;
  }
  text += fmt::format("  flops     {}        gradient  {}        proven by execution on 2, 4, 8 devices\n",
                      flops_text(type), type.gradient != nullptr ? "yes" : "no");
  for (const AttributeSpec& attribute : type.attributes) {
    text += fmt::format("  {:<{}}  {}\n", attribute.name, width, attribute.meaning);
  }
  return text;
}

}  // namespace shardplan
