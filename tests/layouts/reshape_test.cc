#include "layouts/reshape.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

struct RefineCase {
  Shape a;
  Shape b;
  std::optional<Shape> factors;
};
const RefineCase kRefine[] = {
    {{2, 4}, {4, 2}, Shape{2, 2, 2}},
    {{8, 4}, {2, 16}, Shape{2, 4, 4}},
    {{512, 1024}, {128, 4096}, Shape{128, 4, 1024}},
    {{2, 1, 8}, {16}, Shape{2, 8}},
    {{1, 1}, {}, Shape{}},
    {{2, 3}, {3, 2}, std::nullopt},
    {{2, 3}, {7}, std::nullopt},
};
TEST(ReshapeTest, RefinesShapesToCommonFactors) {
  for (const RefineCase& c : kRefine) EXPECT_EQ(refine(c.a, c.b), c.factors);
}

TEST(ReshapeTest, FlattensOnlyWhatDiffers) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const ReshapeEnds ends =
      flatten_ends(parse_layout("[{x}, {y}, {}]", mesh), {4, 16, 6}, parse_layout("[{x}, {}, {y}]", mesh), {4, 2, 48});
  EXPECT_EQ(ends.shape, (Shape{4, 96}));
  EXPECT_EQ(to_string(ends.from, mesh), "[{x}, {y}]");
  EXPECT_EQ(to_string(ends.to, mesh), "[{x}, (2:{}, 48:{y})]");
}

TEST(ReshapeTest, CuttingTheSequenceIsAPartOfTheFlatDimension) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2");
  const auto flat = reshaped(parse_layout("[{}, {x}, {}]", mesh), {2, 4, 3}, {8, 3});
  ASSERT_TRUE(flat);
  EXPECT_EQ(to_string(*flat, mesh), "[(2:{}, 4:{x}), {}]");
  EXPECT_EQ(held_indices(*flat, mesh, {8, 3}, 0)[0], (std::vector<std::int64_t>{0, 1, 4, 5}));
  const DeviceMesh four = DeviceMesh::parse("x=4");
  EXPECT_EQ(reshaped(parse_layout("[{x}]", four), {12}, {2, 6}), parse_layout("[{x:(1)2}, {x:(2)2}]", four));
  EXPECT_EQ(reshaped(parse_layout("[{x}]", four), {12}, {3, 4}), std::nullopt);
}

/// The flat positions of what a device holds, in the device's order.
std::vector<std::int64_t> flat_positions(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape,
                                         std::int64_t point) {
  std::vector<std::int64_t> positions = {0};
  const auto held = held_indices(layout, mesh, shape, point);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> longer;
    for (const std::int64_t position : positions) {
      for (const std::int64_t index : held[d]) longer.push_back(position * shape[d] + index);
    }
    positions = std::move(longer);
  }
  return positions;
}

TEST(ReshapeTest, TheSameDevicesHoldTheSameNumbersInTheSameOrder) {
  Random random(29);
  const DeviceMesh mesh = DeviceMesh::parse("a=4,b=3,c=2");
  const Shape shapes[] = {{24, 12}, {12, 24}, {288}, {2, 12, 3, 4}, {6, 1, 48}, {9, 32}};
  std::size_t expressed = 0;
  for (int i = 0; i < 600; ++i) {
    const Shape& from_shape = shapes[random.below(6)];
    const Shape& to_shape = shapes[random.below(6)];
    const TensorLayout from = random_layout(mesh, from_shape, random, true, true);
    const TensorLayout to = random_layout(mesh, to_shape, random, true, false);
    const ReshapeEnds ends = flatten_ends(from, from_shape, to, to_shape);
    ASSERT_EQ(check_layout(ends.from, mesh, ends.shape), "");
    const auto direct = reshaped(from, from_shape, to_shape);
    expressed += direct ? 1 : 0;
    for (const std::int64_t point : {0, 7, 23}) {
      const auto expected = flat_positions(from, mesh, from_shape, point);
      ASSERT_EQ(flat_positions(ends.from, mesh, ends.shape, point), expected);
      ASSERT_EQ(flat_positions(ends.to, mesh, ends.shape, point), flat_positions(to, mesh, to_shape, point));
      if (direct) {
        ASSERT_EQ(flat_positions(*direct, mesh, to_shape, point), expected);
      }
    }
  }
  EXPECT_GT(expressed, 200u);
}

}  // namespace
}  // namespace shardplan
