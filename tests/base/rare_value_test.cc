#include "base/rare_value.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace shardplan {
namespace {

TEST(RareValueTest, IsAnOptionalOfEightBytes) {
  RareValue<std::string> value;
  EXPECT_EQ(sizeof(value), 8U);
  EXPECT_FALSE(value);
  EXPECT_FALSE(value.has_value());
  EXPECT_EQ(value.value_or("other"), "other");
  value = std::string("text");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, "text");
  EXPECT_EQ(value->size(), 4U);
  EXPECT_EQ(value.value_or("other"), "text");
  const RareValue<std::string> copy = value;
  value.reset();
  EXPECT_FALSE(value);
  EXPECT_EQ(*copy, "text");
  EXPECT_FALSE(value == copy);
}

TEST(RareValueTest, IsMadeOfOptionalsAndGivesThem) {
  const RareValue<std::string> none = std::optional<std::string>();
  const RareValue<std::string> some = std::optional<std::string>("text");
  const std::optional<std::string>& given = some;
  EXPECT_EQ(given, "text");
  EXPECT_EQ(std::optional<std::string>(none), std::nullopt);
  EXPECT_EQ(none, RareValue<std::string>(std::nullopt));
  EXPECT_EQ(RareValue<std::string>(SharedValue<std::string>("text")), some);
}

}  // namespace
}  // namespace shardplan
