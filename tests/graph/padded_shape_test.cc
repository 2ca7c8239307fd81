#include "graph/padded_shape.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace shardplan {
namespace {

/// Computed by counting through all positions, major part first: whether each of a position's coordinates is real, and
/// how many real positions come before it.
std::vector<RealPosition> by_counting(const PaddedDimension& dimension) {
  std::vector<bool> exists = {true};
  for (const PaddedPart& part : dimension) {
    std::vector<bool> next;
    for (const bool outer : exists) {
      for (std::int64_t i = 0; i < part.padded; ++i) next.push_back(outer && i < part.real);
    }
    exists = std::move(next);
  }
  std::vector<RealPosition> positions;
  std::int64_t count = 0;
  for (const bool one : exists) {
    positions.push_back({one, count});
    count += one ? 1 : 0;
  }
  return positions;
}

TEST(PaddedShapeTest, TheExamplesOfTheHeader) {
  const PaddedDimension words = {{50304, 50257}};
  EXPECT_EQ(to_string(words), "50304 (50257 + 47 padding)");
  const PaddedDimension heads = joined(PaddedDimension{{16, 12}, {64, 64}});
  EXPECT_EQ(heads, (PaddedDimension{{1024, 768}}));
  const PaddedDimension qkv = joined(PaddedDimension{{3, 3}, {16, 12}, {64, 64}});
  EXPECT_EQ(qkv, (PaddedDimension{{3, 3}, {1024, 768}}));
  EXPECT_EQ(padded_size(qkv), 3072);
  EXPECT_EQ(real_size(qkv), 2304);
  EXPECT_TRUE(has_padding(qkv));
  const PaddedDimension whole = {{768, 768}};
  EXPECT_EQ(to_string(whole), "768");
  EXPECT_FALSE(has_padding(whole));
  EXPECT_FALSE(has_padding(PaddedShape{whole, whole}));
  EXPECT_TRUE(has_padding(PaddedShape{whole, qkv}));
  EXPECT_EQ(real_shape({whole, qkv}), (Shape{768, 2304}));
  EXPECT_EQ(joined(PaddedDimension{}), (PaddedDimension{{1, 1}}));
}

TEST(PaddedShapeTest, PositionsExistWhereAllCoordinatesDo) {
  constexpr std::uint64_t kSeed = 19;
  Random random(kSeed);
  for (int round = 0; round < 500; ++round) {
    PaddedDimension dimension;
    for (std::uint64_t parts = 1 + random.below(4); parts > 0; --parts) {
      const auto padded = static_cast<std::int64_t>(1 + random.below(5));
      const bool is_whole = random.below(2) == 0;
      dimension.push_back({padded, is_whole ? padded : 1 + static_cast<std::int64_t>(random.below(padded))});
    }
    const PaddedDimension few = joined(dimension);
    EXPECT_LE(few.size(), dimension.size());
    const std::vector<RealPosition> expected = by_counting(dimension);
    ASSERT_EQ(padded_size(dimension), static_cast<std::int64_t>(expected.size()));
    ASSERT_EQ(padded_size(few), static_cast<std::int64_t>(expected.size()));
    std::int64_t count = 0;
    for (std::size_t position = 0; position < expected.size(); ++position) {
      for (const PaddedDimension& form : {dimension, few}) {
        const RealPosition found = real_position(form, static_cast<std::int64_t>(position));
        ASSERT_EQ(found.exists, expected[position].exists) << to_string(form) << ", seed " << kSeed;
        if (found.exists) {
          ASSERT_EQ(found.at, expected[position].at) << to_string(form) << ", seed " << kSeed;
        }
      }
      count += expected[position].exists ? 1 : 0;
    }
    EXPECT_EQ(real_size(dimension), count);
    EXPECT_EQ(real_size(few), count);
    // As few parts as possible: every one except the first has padding.
    for (std::size_t i = 1; i < few.size(); ++i) EXPECT_LT(few[i].real, few[i].padded) << "seed " << kSeed;
  }
}

}  // namespace
}  // namespace shardplan
