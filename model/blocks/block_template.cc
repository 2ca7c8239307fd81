#include "model/blocks/block_template.h"

#include <utility>

namespace shardplan {

BlockTemplate::Value BlockTemplate::add_value(TensorType type) {
  types.push_back(std::move(type));
  return static_cast<Value>(types.size() - 1);
}

std::vector<TensorType> BlockTemplate::types_of(const std::vector<Value>& values) const {
  std::vector<TensorType> result;
  for (const Value value : values) result.push_back(types[value]);
  return result;
}

std::optional<TensorType> parameter_type(const BlockTemplate& block, const std::string& path) {
  for (const BlockTemplate::Stored& parameter : block.parameters) {
    if (parameter.name == path) return block.types[parameter.value];
  }
  for (const BlockTemplate::Item& item : block.items) {
    const std::string& name = item.syntax->name.text;
    if (item.copies.empty() || !path.starts_with(name + ".")) continue;
    std::string rest = path.substr(name.size() + 1);
    std::size_t copy = 0;
    if (item.syntax->repeat) {
      const std::size_t dot = rest.find('.');
      if (dot == std::string::npos || dot > 9 || rest.find_first_not_of("0123456789") != dot) return std::nullopt;
      copy = std::stoul(rest.substr(0, dot));
      rest = rest.substr(dot + 1);
    }
    return copy < item.copies.size() ? parameter_type(*item.copies[copy], rest) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace shardplan
