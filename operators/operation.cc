#include "operators/operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/integer.h"
#include "operators/operator_type.h"

namespace shardplan {
namespace {

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

/// True if `value` is of the kind, where need be after converting it.
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
      if (!spec.standard) {
        throw InputError(SourcePlace{}, "{} needs the attribute {} ({})", type.name, spec.name, spec.meaning);
      }
      result.emplace(spec.name, *spec.standard);
      continue;
    }
    Attribute& value = result.emplace(spec.name, at->second).first->second;
    if (!convert(value, spec.kind)) {
      throw InputError(SourcePlace{}, "attribute {} of {} is {}; expected {}", spec.name, type.name,
                       to_string(at->second), kind_text(spec.kind));
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
  const bool repeats = !type.operand_names.empty() && type.operand_names.back().ends_with("...");
  const std::size_t wanted = type.operand_names.size();
  if (repeats ? found >= wanted : found == wanted) return;
  throw InputError(SourcePlace{}, "{} takes {}{} input{}{}, found {}", type.name, repeats ? "at least " : "", wanted,
                   wanted == 1 ? "" : "s", wanted == 0 ? "" : fmt::format(" ({})", fmt::join(type.operand_names, ", ")),
                   found);
}

/// Sizes that hostile files may give: every tensor's bytes must fit in 64 bits.
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

/// A rule that does not fit its tensors is our own fault.
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

template <class T>
const T& attribute(const Operation& operation, const std::string& name) {
  const auto at = operation.attributes.find(name);
  SHARDPLAN_CHECK(at != operation.attributes.end());
  const T* value = std::get_if<T>(&at->second);
  SHARDPLAN_CHECK(value != nullptr);
  return *value;
}

}  // namespace

std::string to_string(const Attribute& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return fmt::format("({})", fmt::join(std::get<std::vector<std::int64_t>>(value), ", "));
}

Bytes TensorType::bytes() const { return num_bytes(shape, element_bytes(dtype)); }

Bytes local_bytes(const TensorType& type, const TensorLayout& layout) {
  return num_bytes(local_shape(layout, type.shape), element_bytes(type.dtype));
}

std::int64_t Operation::integer(const std::string& name) const { return attribute<std::int64_t>(*this, name); }
double Operation::number(const std::string& name) const { return attribute<double>(*this, name); }
bool Operation::flag(const std::string& name) const { return attribute<bool>(*this, name); }
const std::string& Operation::text(const std::string& name) const { return attribute<std::string>(*this, name); }
const std::vector<std::int64_t>& Operation::list(const std::string& name) const {
  return attribute<std::vector<std::int64_t>>(*this, name);
}

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
  operation.rule = type.rule(operation);
  check_rule(operation);
  return operation;
}

}  // namespace shardplan
