#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// "16x8" or "16,8"; empty is a scalar. Throws InputError that names `option`, also if the tensor's bytes exceed 62
/// bits.
Shape parse_shape(const std::string& option, const std::string& text, Bytes element_bytes);

/// "8,4" or "(8, 4)"; with `-1` if `least` allows it.
std::vector<std::int64_t> parse_integers(const std::string& option, const std::string& text, std::int64_t least);

/// "0-3,8": ranges of whole numbers in the order given, `count` in all. Throws InputError.
std::vector<std::int64_t> parse_ranges(const std::string& option, const std::string& text, std::int64_t count);

}  // namespace shardplan
