#include "base/parse_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace shardplan {
namespace {

TEST(ParseNumberTest, ReadsWholeTexts) {
  EXPECT_EQ(parse_number<int>("12"), 12);
  EXPECT_EQ(parse_number<std::int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(parse_number<double>("2.5e-3"), 2.5e-3);
}

TEST(ParseNumberTest, IsNothingForAnyOtherText) {
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x10", "1.0", "one", "-", "2147483648"}) {
    EXPECT_FALSE(parse_number<int>(text)) << text;
  }
  EXPECT_FALSE(parse_number<std::uint64_t>("-1"));
  EXPECT_FALSE(parse_number<double>("1,5"));
}

}  // namespace
}  // namespace shardplan
