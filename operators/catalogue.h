#pragma once

#include <string_view>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// All operators that the project knows, sorted by name: a list of what the families export.
const std::vector<OperatorType>& operator_catalogue();
/// Null if there is none of that name. The pointer stays valid.
const OperatorType* find_operator_type(std::string_view name);

}  // namespace shardplan
