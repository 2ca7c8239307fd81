#include "layouts/index_digits.h"

#include <gtest/gtest.h>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

using HeldPositions = std::vector<std::int64_t>;

/// By the definition of parts: a position's digit in each part is in the piece given by the device's axes.
HeldPositions held_by_parts(const DimensionLayout& dimension, std::int64_t extent, const DeviceMesh& mesh,
                            std::int64_t point) {
  HeldPositions held;
  for (std::int64_t position = 0; position < extent; ++position) {
    bool is_held = true;
    std::int64_t weight = extent;  // of the part before
    for (const DimensionPart& part : dimension.parts) {
      const std::int64_t size = part.size == 0 ? extent : part.size;
      const std::int64_t digit = position % weight / (weight / size);
      weight /= size;
      is_held = is_held && digit / (size / num_pieces(part.axes)) == mesh.coordinate(point, part.axes);
    }
    if (is_held) held.push_back(position);
  }
  return held;
}

/// By the definition of digits: those with an axis equal the device's coordinate along it.
HeldPositions held_by_digits(const std::vector<IndexDigit>& digits, std::int64_t extent, const DeviceMesh& mesh,
                             std::int64_t point) {
  HeldPositions held;
  for (std::int64_t position = 0; position < extent; ++position) {
    bool is_held = true;
    std::int64_t rest = position;
    for (std::size_t i = digits.size(); i-- > 0;) {
      const std::int64_t value = rest % digits[i].size;
      rest /= digits[i].size;
      if (digits[i].axis) is_held = is_held && value == mesh.coordinate(point, *digits[i].axis);
    }
    EXPECT_EQ(rest, 0);
    if (is_held) held.push_back(position);
  }
  return held;
}

TEST(IndexDigitsTest, TheExampleOfTheHeader) {
  const AxisRef x{0, 1, 3};
  const DimensionLayout dimension{{{2, {}}, {12, {x}}}};
  EXPECT_EQ(index_digits(dimension, 24), (std::vector<IndexDigit>{{2, {}}, {3, x}, {4, {}}}));
  EXPECT_EQ(index_digits({}, 24), (std::vector<IndexDigit>{{24, {}}}));
  EXPECT_EQ(index_digits({}, 1), std::vector<IndexDigit>{});
}

TEST(IndexDigitsTest, HoldWhatThePartsHold) {
  const DeviceMesh mesh = DeviceMesh::parse("a=2,b=6,c=2");
  constexpr std::uint64_t kSeed = 3;
  Random random(kSeed);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t extent = i % 2 == 0 ? 48 : 36;
    const TensorLayout layout = random_layout(mesh, {extent}, random, true, true);
    const std::vector<IndexDigit> digits = index_digits(layout.dimensions[0], extent);
    for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
      ASSERT_EQ(held_by_digits(digits, extent, mesh, point), held_by_parts(layout.dimensions[0], extent, mesh, point))
          << to_string(layout, mesh) << " at " << point << ", seed " << kSeed;
    }
  }
}

/// Digits of a random dimension, not joined: of size 1, neighbours without an axis, halves of an axis in a row.
std::vector<IndexDigit> random_digits(Random& random) {
  std::vector<AxisRef> free = {{0, 1, 2}, {1, 1, 2}, {1, 2, 2}, {1, 4, 3}, {2, 1, 1}};
  std::vector<IndexDigit> digits;
  while (digits.size() < 7 && random.below(6) != 0) {
    if (random.below(2) == 0 || free.empty()) {
      digits.push_back({static_cast<std::int64_t>(1 + random.below(3)), std::nullopt});
    } else {
      const std::size_t i = random.below(2) == 0 ? 0 : random.below(free.size());
      digits.push_back({free[i].size, free[i]});
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return digits;
}

TEST(IndexDigitsTest, JoinedDigitsMeanTheSameInTheFewestDigits) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=12,z=1");
  constexpr std::uint64_t kSeed = 7;
  Random random(kSeed);
  std::size_t shorter = 0;
  for (int i = 0; i < 500; ++i) {
    const std::vector<IndexDigit> digits = random_digits(random);
    std::int64_t extent = 1;
    for (const IndexDigit& digit : digits) extent *= digit.size;
    const std::vector<IndexDigit> few = joined(digits);
    shorter += few.size() < digits.size() ? 1 : 0;
    for (std::size_t k = 0; k < few.size(); ++k) {
      EXPECT_GT(few[k].size, 1);
      if (k == 0) continue;
      EXPECT_TRUE(few[k - 1].axis || few[k].axis);
      if (few[k - 1].axis && few[k].axis) {
        EXPECT_FALSE(is_followed_by(*few[k - 1].axis, *few[k].axis));
      }
    }
    for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
      ASSERT_EQ(held_by_digits(few, extent, mesh, point), held_by_digits(digits, extent, mesh, point))
          << "seed " << kSeed << ", case " << i;
    }
    // The inverse loses nothing.
    const DimensionLayout dimension = dimension_of_digits(few);
    EXPECT_EQ(index_digits(dimension, extent), few) << "seed " << kSeed << ", case " << i;
    if (dimension.parts.size() == 1) {
      EXPECT_EQ(dimension.parts[0].size, 0);
    }
  }
  EXPECT_GT(shorter, 100u);
}

}  // namespace
}  // namespace shardplan
