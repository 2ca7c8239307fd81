#include "operators/operator_type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/integer.h"
#include "operators/rule_parser.h"

namespace shardplan {
namespace {

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : text) {
    if (c == ',') {
      names.push_back(std::move(name));
      name.clear();
    } else if (c != ' ') {
      name += c;
    }
  }
  if (!name.empty()) names.push_back(std::move(name));
  return names;
}

std::string_view kind_text(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kFlag:
      return "true or false";
    case AttributeKind::kInteger:
      return "an integer";
    case AttributeKind::kNumber:
      return "a number";
    case AttributeKind::kText:
      return "a text";
    case AttributeKind::kList:
      return "a list of integers";
  }
  return "";
}

/// True if `value` has the right kind, if necessary after converting it.
bool convert(Attribute& value, AttributeKind kind) {
  const std::int64_t* integer = std::get_if<std::int64_t>(&value);
  switch (kind) {
    case AttributeKind::kFlag:
      return std::holds_alternative<bool>(value);
    case AttributeKind::kInteger:
      return integer != nullptr;
    case AttributeKind::kNumber:
      if (integer != nullptr) value = static_cast<double>(*integer);
      return std::holds_alternative<double>(value);
    case AttributeKind::kText:
      return std::holds_alternative<std::string>(value);
    case AttributeKind::kList:
      if (integer != nullptr) value = std::vector<std::int64_t>{*integer};
      return std::holds_alternative<std::vector<std::int64_t>>(value);
  }
  return false;
}

Attributes complete_attributes(const OperatorType& type, const Attributes& given) {
  Attributes result;
  std::vector<std::string> known;
  for (const AttributeSpec& spec : type.attributes) {
    known.push_back(spec.name);
    const auto at = given.find(spec.name);
    if (at == given.end()) {
      if (!spec.default_value) {
        throw InputError(SourcePlace{}, "{} needs the attribute {} ({})", type.name, spec.name, spec.description);
      }
      result.emplace(spec.name, *spec.default_value);
      continue;
    }
    Attribute& value = result.emplace(spec.name, at->second).first->second;
    if (!convert(value, spec.kind)) {
      throw InputError(SourcePlace{}, "attribute {} of {} is {}; expected {}", spec.name, type.name,
                       to_string(at->second), kind_text(spec.kind));
    }
    if (spec.least && std::get<double>(value) < *spec.least) {
      throw InputError(SourcePlace{}, "attribute {} of {} is {}; expected at least {}", spec.name, type.name,
                       to_string(at->second), *spec.least);
    }
  }
  for (const auto& [name, value] : given) {
    if (result.contains(name)) continue;
    const std::string nearest = nearest_name(name, known);
    throw InputError(SourcePlace{}, "{} has no attribute '{}'{}", type.name, name,
                     nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
  }
  return result;
}

void check_operand_count(const OperatorType& type, std::size_t found) {
  const bool repeats = !type.signature.operands.empty() && type.signature.operands.back().ends_with("...");
  const std::size_t wanted = type.signature.operands.size();
  const std::size_t needed = wanted - type.signature.num_optional;
  if (repeats ? found >= wanted : found >= needed && found <= wanted) return;
  const std::string least = repeats ? "at least " : needed < wanted ? fmt::format("{} to ", needed) : "";
  throw InputError(SourcePlace{}, "{} takes {}{} input{}{}, found {}", type.name, least, wanted, wanted == 1 ? "" : "s",
                   wanted == 0 ? "" : fmt::format(" ({})", fmt::join(type.signature.operands, ", ")), found);
}

/// Sizes from hostile files: every tensor's bytes must fit in 64 bits.
void check_size(const OperatorType& type, std::string_view what, const TensorType& tensor) {
  std::optional<std::int64_t> bytes = element_bytes(tensor.dtype);
  for (const std::int64_t size : tensor.shape) {
    if (size < 1) {
      throw InputError(SourcePlace{}, "{}: {} {} has a dimension of size {}; expected at least 1", type.name, what,
                       to_string(tensor.shape), size);
    }
    if (bytes) bytes = checked_multiply(*bytes, size);
  }
  if (!bytes) {
    throw InputError(SourcePlace{}, "{}: {} {} has more bytes than 64 bits can count", type.name, what,
                     to_string(tensor.shape));
  }
}

/// A rule that does not fit its tensors is a bug.
void check_rule(const Operation& operation) {
  const ShardingRule& rule = operation.rule;
  SHARDPLAN_CHECK(rule.operands.size() == operation.operands.size());
  SHARDPLAN_CHECK(rule.results.size() == operation.results.size());
  const auto check_walk = [&](const TensorWalk& walk, const Shape& shape) {
    SHARDPLAN_CHECK(walk.size() == shape.size());
    for (std::size_t d = 0; d < walk.size(); ++d) {
      if (walk[d].window) continue;
      std::int64_t product = 1;
      for (const std::uint32_t factor : walk[d].factors) product *= rule.factors[factor].size;
      SHARDPLAN_CHECK(walk[d].factors.empty() || product == shape[d]);
    }
  };
  for (std::size_t i = 0; i < rule.operands.size(); ++i) check_walk(rule.operands[i], operation.operands[i].shape);
  for (std::size_t i = 0; i < rule.results.size(); ++i) check_walk(rule.results[i], operation.results[i].shape);
}

/// The operands that a group of names stands for: one group, or for a repeated operand "x..." one for each.
void add_groups(const Signature& signature, std::size_t num_operands, const OperandGroups& names,
                std::vector<std::vector<std::uint32_t>>& groups) {
  const auto add = [&](std::vector<std::uint32_t> group) {
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(std::move(group));
  };
  for (const std::vector<std::string>& group : names) {
    std::vector<std::uint32_t> positions;
    for (const std::string& name : group) {
      for (std::uint32_t i = 0; i < num_operands; ++i) {
        const std::string& own = signature.operands[std::min<std::size_t>(i, signature.operands.size() - 1)];
        if (own == name) positions.push_back(i);
        if (own == name + "...") add({i});
      }
    }
    if (!positions.empty()) add(std::move(positions));
  }
}

ShardingRule make_rule(const Operation& operation) {
  const OperatorType& type = *operation.type;
  ShardingRule rule;
  if (type.rule != nullptr) {
    rule = type.rule(operation);
  } else {
    std::vector<Shape> operands, results;
    for (const TensorType& operand : operation.operands) operands.push_back(operand.shape);
    for (const TensorType& result : operation.results) results.push_back(result.shape);
    rule = parse_rule(type.rule_text, operands, results);
  }
  add_groups(type.signature, operation.operands.size(), type.linear, rule.linear);
  add_groups(type.signature, operation.operands.size(), type.monotone, rule.monotone);
  return rule;
}

}  // namespace

Signature::Signature(const char* text) {
  const std::string_view whole = text;
  const std::size_t arrow = whole.find("->");
  operands = split_names(whole.substr(0, arrow));
  for (std::string& name : operands) {
    if (!name.ends_with('?')) continue;
    name.pop_back();
    ++num_optional;
  }
  results = split_names(whole.substr(arrow + 2));
}

bool is_executable(const OperatorType& type) { return type.kernel != nullptr || type.phases != nullptr; }

Operation make_operation(const OperatorType& type, const Attributes& attributes, std::vector<TensorType> operands) {
  Operation operation;
  operation.type = &type;
  operation.attributes = complete_attributes(type, attributes);
  check_operand_count(type, operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_size(type, fmt::format("input {}", i + 1), operands[i]);
  }
  operation.operands = std::move(operands);
  operation.results = type.infer(operation);
  for (const TensorType& result : operation.results) check_size(type, "result", result);
  operation.rule = make_rule(operation);
  check_rule(operation);
  return operation;
}

double flops(const Operation& operation, std::span<const std::int64_t> factor_extents) {
  const OperatorType& type = *operation.type;
  if (type.work == WorkKind::kView) return 0;
  if (type.flops != nullptr) return type.flops(operation, factor_extents);
  double points = type.flops_per_point;
  for (const std::int64_t extent : factor_extents) points *= static_cast<double>(extent);
  return points;
}

}  // namespace shardplan
