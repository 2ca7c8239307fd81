#include "report/text/text_table.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

using Align = TextTable::Align;

TEST(TextTableTest, AlignsColumnsAndEndsNoLineInBlanks) {
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
  table.add({"forward", "29.2", "x"});
  table.add({"step", "113.0", ""});
  table.add({"all"});
  EXPECT_EQ(table.to_string(2),
            "  forward   29.2  x\n"
            "  step     113.0\n"
            "  all\n");
}

TEST(TextTableTest, ColourDoesNotMoveColumns) {
  TextTable table({Align::kRight, Align::kLeft});
  table.add({{"7", TextStyle::kBold}, "a"});
  table.add({"10", "b"});
  EXPECT_EQ(table.to_string(0, true), " \x1b[1m7\x1b[0m  a\n10  b\n");
  EXPECT_EQ(table.to_string(0, false), " 7  a\n10  b\n");
}

TEST(TextTableTest, UnitFollowsTheLargest) {
  EXPECT_EQ(time_unit(83'800'000'000).format(700'000'000), "0.7");
  EXPECT_EQ(time_unit(83'800'000'000).name, "ms");
  EXPECT_EQ(time_unit(1'500'000).format(1'500'000), "1.50");
  EXPECT_EQ(time_unit(83'800'000'000).format(15'580'100'000'000), "15580");
  EXPECT_EQ(time_unit(0).name, "us");
  EXPECT_EQ(bytes_unit(28'311'552).format(28'311'552), "27.0");
  EXPECT_EQ(bytes_unit(512).format(512), "512");
}

TEST(TextTableTest, OneThingIsNotSeveral) {
  EXPECT_EQ(counted(0, "send"), "0 sends");
  EXPECT_EQ(counted(1, "device"), "1 device");
  EXPECT_EQ(counted(8, "device"), "8 devices");
}

TEST(TextTableTest, LineBreaksWithinTheWidth) {
  std::string words;
  for (int i = 0; i < 40; ++i) words += "word ";
  const auto expect_hanging = [](std::string_view text, std::string_view head) {
    EXPECT_TRUE(text.starts_with(head)) << text;
    const std::size_t column = head.find("word");
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, 100U);
      EXPECT_EQ(text.find("word", begin), begin + column) << text;
      begin = end + 1;
    }
  };
  expect_hanging(wrapped_line("peak", words), "  peak        word word");
  expect_hanging(figure_line("peak", "3.2 GiB", words), "  peak        3.2 GiB    word word");
  EXPECT_EQ(figure_line("peak", "3.2 GiB", "in all"), "  peak        3.2 GiB    in all\n");
}

TEST(TextTableTest, TextHangsWhatFollowsAndBreaksNoWord) {
  EXPECT_EQ(wrapped("[{pcie, hccs:(1)2}, {}] unreduced={hccs:(2)2}", 21, 1),
            (std::vector<std::string>{"[{pcie, hccs:(1)2},", " {}]", " unreduced={hccs:(2)2}"}));
  EXPECT_EQ(wrapped("[{}, {}]", 8, 1), std::vector<std::string>{"[{}, {}]"});
  EXPECT_TRUE(wrapped("", 8).empty());
}

}  // namespace
}  // namespace shardplan
