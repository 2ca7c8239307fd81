#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace shardplan {

/// kF8E4M3 has 4 bits of exponent and 3 of mantissa (Micikevicius et al., FP8 formats for deep learning, 2022).
enum class DataType { kF64, kF32, kF16, kBF16, kF8E4M3, kI64, kI32, kI8, kU8, kBool };

Bytes element_bytes(DataType type);
bool is_floating(DataType type);
/// "f32", as in model files.
std::string_view to_string(DataType type);
/// "Float32", as MindSpore prints it.
std::string_view mindspore_name(DataType type);
std::optional<DataType> parse_data_type(std::string_view text);
/// "f64, f32, ... or bool": all types, for messages.
std::string data_type_list();

}  // namespace shardplan
