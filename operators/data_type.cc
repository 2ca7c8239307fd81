#include "operators/data_type.h"

#include <array>

namespace shardplan {
namespace {

struct Description {
  DataType type;
  std::string_view name;
  std::string_view mindspore;
  Bytes bytes;
};
constexpr std::array<Description, 10> kDescriptions = {{
    {DataType::kF64, "f64", "Float64", 8},
    {DataType::kF32, "f32", "Float32", 4},
    {DataType::kF16, "f16", "Float16", 2},
    {DataType::kBF16, "bf16", "BFloat16", 2},
    {DataType::kF8E4M3, "f8e4m3", "Float8E4M3FN", 1},
    {DataType::kI64, "i64", "Int64", 8},
    {DataType::kI32, "i32", "Int32", 4},
    {DataType::kI8, "i8", "Int8", 1},
    {DataType::kU8, "u8", "UInt8", 1},
    {DataType::kBool, "bool", "Bool", 1},
}};

const Description& describe(DataType type) { return kDescriptions[static_cast<std::size_t>(type)]; }

}  // namespace

Bytes element_bytes(DataType type) { return describe(type).bytes; }

bool is_floating(DataType type) { return type <= DataType::kF8E4M3; }

std::string_view to_string(DataType type) { return describe(type).name; }

std::string_view mindspore_name(DataType type) { return describe(type).mindspore; }

std::optional<DataType> parse_data_type(std::string_view text) {
  for (const Description& description : kDescriptions) {
    if (description.name == text) return description.type;
  }
  return std::nullopt;
}

std::string data_type_list() {
  std::string list;
  for (const Description& description : kDescriptions) {
    const bool is_last = &description == &kDescriptions.back();
    list += (list.empty() ? "" : is_last ? " or " : ", ") + std::string(description.name);
  }
  return list;
}

}  // namespace shardplan
