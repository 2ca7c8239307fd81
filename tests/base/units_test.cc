#include "base/units.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(UnitsTest, TimesHaveThreeDigitsAndTheUnitThatSuits) {
  EXPECT_EQ(format_time(0), "0 us");
  EXPECT_EQ(format_time(25'100'000), "25.1 us");
  EXPECT_EQ(format_time(999'600'000), "1.00 ms");
  EXPECT_EQ(format_time(83'800'000'000), "83.8 ms");
  EXPECT_EQ(format_time(1'582'660'000'000'000), "1583 s");
  EXPECT_EQ(format_time(400'000), "0.40 us");
}

TEST(UnitsTest, BytesHaveOneDecimalAndPowersOf1024) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(28'311'552), "27.0 MiB");
  EXPECT_EQ(format_bytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(std::int64_t{80} << 30), "80.0 GiB");
  EXPECT_EQ(format_bytes_above(28'311'552), "27.0 MiB");
  EXPECT_EQ(format_bytes_above(28'311'553), "27.1 MiB");
  EXPECT_EQ(format_bytes_above(512), "512 B");
}

}  // namespace
}  // namespace shardplan
