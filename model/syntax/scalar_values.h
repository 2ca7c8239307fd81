#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.h"

namespace shardplan {

/// What scalars of a model file mean where the place asks for one kind of value; nothing for what is no such value.

/// null, or Python's None.
bool is_none(const YamlNode& node);
/// true or false.
std::optional<bool> flag_value(const YamlNode& node);
/// A decimal number with an optional sign; no expression.
std::optional<std::int64_t> whole_value(const YamlNode& node);

}  // namespace shardplan
