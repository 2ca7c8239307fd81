#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Attributes of operators and options of blocks; without a default value they must be given.
AttributeSpec flag(std::string name, bool default_value, std::string description);
AttributeSpec integer(std::string name, std::optional<std::int64_t> default_value, std::string description);
AttributeSpec number(std::string name, std::optional<double> default_value, std::string description);
AttributeSpec text(std::string name, std::optional<std::string> default_value, std::string description);
AttributeSpec list(std::string name, std::optional<std::vector<std::int64_t>> default_value, std::string description);

/// "epsilon", of norms.
AttributeSpec epsilon(double default_value);

/// The default of an optional list: no numbers.
inline std::vector<std::int64_t> empty_list() { return {}; }

}  // namespace shardplan
