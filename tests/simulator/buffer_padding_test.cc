#include <gtest/gtest.h>

#include <cmath>

#include "simulator/execute/padding.h"

namespace shardplan {
namespace {

TEST(BufferPaddingTest, IsPoisonBehindWhatIsHeld) {
  const std::vector<double> values{1, 2, 3, 4};
  const std::vector<double> buffer = with_padding(values, {2, 2}, {3, 3});
  ASSERT_EQ(buffer.size(), 9u);
  for (const std::size_t held : {0u, 1u, 3u, 4u}) EXPECT_FALSE(std::isnan(buffer[held])) << held;
  for (const std::size_t pads : {2u, 5u, 6u, 7u, 8u}) EXPECT_TRUE(std::isnan(buffer[pads])) << pads;
  EXPECT_EQ(buffer[3], 3);
  EXPECT_EQ(without_padding(buffer, {3, 3}, {2, 2}), values);
}

TEST(BufferPaddingTest, BuffersWithoutPaddingStay) {
  EXPECT_EQ(with_padding({1, 2}, {2}, {2}), (std::vector<double>{1, 2}));
  EXPECT_EQ(with_padding({5}, {}, {}), (std::vector<double>{5}));
  EXPECT_EQ(without_padding({5}, {}, {}), (std::vector<double>{5}));
  EXPECT_EQ(without_padding({1, 2, 3}, {3}, {0}), std::vector<double>{});
}

TEST(BufferPaddingTest, PaddingEqualsPaddingAndNothingElse) {
  const std::vector<double> padded = with_padding({1}, {1}, {2});
  EXPECT_TRUE(hold_the_same(padded, padded));
  EXPECT_FALSE(hold_the_same(padded, {1, 0}));
  EXPECT_FALSE(hold_the_same({1, 0}, padded));
  EXPECT_FALSE(hold_the_same(padded, {1}));
}

}  // namespace
}  // namespace shardplan
