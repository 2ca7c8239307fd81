#include "report/catalogue_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "model/blocks/built_in_blocks.h"
#include "operators/catalogue.h"
#include "operators/families/communication.h"

namespace shardplan {
namespace {

/// Formats "... m k, k n -> ... m n; k: sum" with the part on the factors set apart.
std::string rule_line(const std::string& rule) {
  const std::size_t end = rule.find(';');
  if (end == std::string::npos) return rule;
  return fmt::format("{}          {}; all others pass through", rule.substr(0, end), rule.substr(end + 2));
}

std::string flops_text(const OperatorType& type) {
  if (!type.flops_text.empty()) return type.flops_text;
  if (type.flops_per_point == 0) return "none, moves bytes";
  return fmt::format("{} per point of the iteration space", type.flops_per_point);
}

/// "x1 and in x2", "x and bias together", "x, and in cos and sin together", "all x together", "each x".
std::string groups_text(const Signature& signature, const OperandGroups& groups) {
  std::vector<std::string> texts;
  bool has_joint = false;
  for (const std::vector<std::string>& group : groups) {
    const bool repeats = group.size() == 1 && group[0].ends_with("...");
    const bool is_each =
        group.size() == 1 && std::ranges::find(signature.operands, group[0] + "...") != signature.operands.end();
    has_joint = has_joint || repeats || group.size() > 1;
    texts.push_back(repeats            ? fmt::format("all {} together", group[0].substr(0, group[0].size() - 3))
                    : is_each          ? fmt::format("each {}", group[0])
                    : group.size() > 1 ? fmt::format("{} together", fmt::join(group, " and "))
                                       : group[0]);
  }
  return fmt::format("{}", fmt::join(texts, has_joint ? ", and in " : " and in "));
}

/// The partial operands that may pass through; empty if none may.
std::string partial_text(const OperatorType& type) {
  if (type.linear.empty() && type.monotone.empty()) return {};
  const std::string linear = groups_text(type.signature, type.linear);
  const std::string monotone = groups_text(type.signature, type.monotone);
  if (linear == monotone) return fmt::format("linear and monotone in {}", linear);
  if (linear.empty()) return fmt::format("monotone in {}", monotone);
  if (!monotone.empty()) return fmt::format("linear in {}, monotone in {}", linear, monotone);
  return fmt::format("linear in {}{}", linear,
                     type.linear.size() == 2 && linear.find("together") == std::string::npos
                         ? ": a partial sum passes through either"
                         : "");
}

std::string block_text(const BuiltInBlock& block) {
  std::string text = fmt::format("{}: {}\n", block.name, block.summary);
  for (const AttributeSpec& option : block.options) {
    text += fmt::format("  {}{}: {}\n", option.name,
                        option.default_value ? " = " + to_string(*option.default_value) : "", option.description);
  }
  return text;
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
  std::vector<std::string> operands = type.signature.operands;
  for (std::size_t i = operands.size() - type.signature.num_optional; i < operands.size(); ++i) operands[i] += '?';
  std::string text =
      fmt::format("{}({}) -> {}", type.name, fmt::join(operands, ", "), fmt::join(type.signature.results, ", "));
  std::vector<std::string> values;
  std::size_t width = 0;
  for (const AttributeSpec& attribute : type.attributes) {
    values.push_back(attribute.name);
    if (attribute.default_value && is_given(*attribute.default_value))
      values.back() += " = " + to_string(*attribute.default_value);
    width = std::max(width, attribute.name.size());
  }
  if (!values.empty()) text += fmt::format("        {}", fmt::join(values, ", "));
  text += fmt::format("\n  rule      {}\n", rule_line(type.rule_text));
  if (const std::string partial = partial_text(type); !partial.empty()) text += fmt::format("  {}\n", partial);
  for (std::size_t begin = 0; begin < type.notes.size();) {
    const std::size_t end = std::min(type.notes.find('\n', begin), type.notes.size());
    text += fmt::format("  {}\n", type.notes.substr(begin, end - begin));
    begin = end + 1;
  }
  text +=
      fmt::format("  flops     {}        gradient  {}{}\n", flops_text(type), type.gradient != nullptr ? "yes" : "no",
                  is_communication(type) ? "" : "        proven by execution on 2, 4, 8 devices");
  for (const AttributeSpec& attribute : type.attributes) {
    text += fmt::format("  {:<{}}  {}\n", attribute.name, width, attribute.description);
  }
  return text;
}

std::string catalogue_report(const std::string& name) {
  if (const OperatorType* type = find_operator_type(name)) return operator_report(*type);
  if (const BuiltInBlock* block = find_built_in_block(name)) return block_text(*block);
  std::vector<std::string> known;
  for (const OperatorType& type : operator_catalogue()) known.push_back(type.name);
  for (const BuiltInBlock& block : built_in_blocks()) known.push_back(block.name);
  const std::string nearest = nearest_name(name, known);
  throw InputError(SourcePlace{}, "no operator '{}'{}", name,
                   nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
}

}  // namespace shardplan
