#include "operators/building/attributes.h"

#include <utility>

namespace shardplan {

AttributeSpec flag(std::string name, bool default_value, std::string description) {
  return {std::move(name), AttributeKind::kFlag, default_value, std::move(description)};
}

AttributeSpec integer(std::string name, std::optional<std::int64_t> default_value, std::string description) {
  return {std::move(name), AttributeKind::kInteger, default_value, std::move(description)};
}

AttributeSpec number(std::string name, std::optional<double> default_value, std::string description) {
  return {std::move(name), AttributeKind::kNumber, default_value, std::move(description)};
}

AttributeSpec text(std::string name, std::optional<std::string> default_value, std::string description) {
  return {std::move(name), AttributeKind::kText, default_value, std::move(description)};
}

AttributeSpec list(std::string name, std::optional<std::vector<std::int64_t>> default_value, std::string description) {
  return {std::move(name), AttributeKind::kList, default_value, std::move(description)};
}

AttributeSpec epsilon(double default_value) {
  AttributeSpec spec = number("epsilon", default_value, "added to the variance");
  spec.least = 0;
  return spec;
}

}  // namespace shardplan
