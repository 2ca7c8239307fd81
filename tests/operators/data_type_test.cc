#include "operators/data_type.h"

#include <gtest/gtest.h>

#include <string>

namespace shardplan {
namespace {

struct TypeCase {
  DataType type;
  const char* name;
  const char* mindspore;  // mindspore.dtype, not in lower case
  bool is_floating;
};
const TypeCase kTypeNames[] = {
    {DataType::kF64, "f64", "Float64", true},
    {DataType::kF32, "f32", "Float32", true},
    {DataType::kF16, "f16", "Float16", true},
    {DataType::kBF16, "bf16", "BFloat16", true},
    {DataType::kF8E4M3, "f8e4m3", "Float8E4M3FN", true},
    {DataType::kI64, "i64", "Int64", false},
    {DataType::kI32, "i32", "Int32", false},
    {DataType::kI8, "i8", "Int8", false},
    {DataType::kU8, "u8", "UInt8", false},
    {DataType::kBool, "bool", "Bool", false},
};

TEST(DataTypeTest, NamesSayTypeAndSize) {
  for (const TypeCase& c : kTypeNames) {
    EXPECT_EQ(to_string(c.type), c.name);
    EXPECT_EQ(parse_data_type(c.name), c.type);
    EXPECT_EQ(mindspore_name(c.type), c.mindspore);
    EXPECT_EQ(is_floating(c.type), c.is_floating) << c.name;
    // The first number in a name is the number of bits; a bool takes a byte.
    const std::string name = c.name;
    const std::size_t digit = name.find_first_of("0123456789");
    EXPECT_EQ(element_bytes(c.type), digit == std::string::npos ? 1 : std::stoi(name.substr(digit)) / 8) << c.name;
  }
}

TEST(DataTypeTest, OtherNamesAreNone) {
  for (const char* name : {"", "F32", "float32", "f33", "f32 ", "Float32"}) EXPECT_FALSE(parse_data_type(name)) << name;
}

}  // namespace
}  // namespace shardplan
