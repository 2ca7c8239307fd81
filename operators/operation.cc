#include "operators/operation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace shardplan {
namespace {

template <class T>
const T& attribute(const Operation& operation, const std::string& name) {
  const auto at = operation.attributes.find(name);
  SHARDPLAN_CHECK(at != operation.attributes.end());
  const T* value = std::get_if<T>(&at->second);
  SHARDPLAN_CHECK(value != nullptr);
  return *value;
}

}  // namespace

bool is_given(const Attribute& attribute) {
  const auto* text = std::get_if<std::string>(&attribute);
  return text == nullptr || !text->empty();
}

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

}  // namespace shardplan
