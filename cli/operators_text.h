#pragma once

#include <string>

namespace shardplan {

/// `shardplan operators [NAME]`: the catalogue, one operator, or the expansion of a built-in block ("nn.Dense"). `name`
/// may be empty. Throws InputError with the nearest name if there is none of that name.
std::string operators_text(const std::string& name);

}  // namespace shardplan
