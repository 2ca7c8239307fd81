#include "base/utf8.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

struct LengthCase {
  std::string_view text;
  std::size_t length;
};
const LengthCase kLengths[] = {
    {"", 0},
    {"a", 1},
    {"\xc3\xa4", 2},
    {"\xe2\x82\xac", 3},
    {"\xf0\x9f\x98\x80", 4},
    {"\x80", 0},              // no beginning
    {"\xc3", 0},              // ends too early
    {"\xc0\xaf", 0},          // overlong
    {"\xe0\x80\xaf", 0},      // overlong
    {"\xed\xa0\x80", 0},      // a surrogate
    {"\xf4\x90\x80\x80", 0},  // above U+10FFFF
    {"\xff", 0},
};

TEST(Utf8Test, KnowsCharacters) {
  for (const LengthCase& c : kLengths) EXPECT_EQ(utf8_length(c.text, 0), c.length) << c.text;
  EXPECT_EQ(utf8_length("a\xc3\xa4", 1), 2u);
}

TEST(Utf8Test, CodePointsBecomeTheirBytes) {
  std::string text;
  for (const std::uint32_t code : {0x61u, 0xe4u, 0x20acu, 0x1f600u, 0xd800u}) append_utf8(text, code);
  EXPECT_EQ(text, "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd");
}

TEST(Utf8Test, KnowsControlCharacters) {
  for (const std::string_view text : {"a\x1b[1m", "a\n", "\t", "\x7f", "\xc2\x9b"})
    EXPECT_TRUE(has_control(text)) << text;
  for (const std::string_view text : {"", "a b", "\xc3\xa4", "\xc2\xa0"}) EXPECT_FALSE(has_control(text)) << text;
}

}  // namespace
}  // namespace shardplan
