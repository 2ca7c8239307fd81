#include "base/shortened.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(ShortenedTest, KeepsAMessageOnOneReadableLine) {
  EXPECT_EQ(shortened(""), "");
  EXPECT_EQ(shortened("~ plain text"), "~ plain text");
  EXPECT_EQ(shortened("a\nb\tc\x7f"), "a?b?c?");
  EXPECT_EQ(shortened("\xc3\xa9"), "??") << "what is no ASCII";
  EXPECT_EQ(shortened(std::string_view("a\0b", 3)), "a?b");
}

TEST(ShortenedTest, CutsBehindAHundredBytes) {
  const std::string hundred(100, 'x');
  EXPECT_EQ(shortened(hundred), hundred);
  EXPECT_EQ(shortened(hundred + "y"), hundred + "...");
}

}  // namespace
}  // namespace shardplan
