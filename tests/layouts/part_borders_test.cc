#include "layouts/redistribution/search/part_borders.h"

#include <gtest/gtest.h>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

const DeviceMesh kBordersMesh = DeviceMesh::parse("x=2,y=3,z=2");
using Borders = std::vector<std::int64_t>;

TEST(PartBordersTest, AreWherePartsEndInside) {
  const struct {
    const char* layout;
    Borders borders;
  } cases[] = {
      {"[{}]", {}},
      {"[{x}]", {}},
      {"[(2:{}, 12:{x})]", {2}},
      {"[(2:{}, 2:{}, 6:{x})]", {4}},      // nothing ends between two parts that are not sharded
      {"[(4:{x}, 6:{y})]", {4}},           // x, 2, y: the part ends at 4
      {"[(2:{}, 4:{x}, 3:{y})]", {2, 8}},  // the 4 is x and 2 of its own
      {"[(2:{x}, 12:{y})]", {}},           // x, y consecutively
  };
  for (const auto& c : cases) {
    const TensorLayout layout = canonical(parse_layout(c.layout, kBordersMesh), kBordersMesh, {24});
    EXPECT_EQ(part_borders(layout, {24}), PartBorders{c.borders}) << c.layout;
  }
}

TEST(PartBordersTest, JoinWhereEachDividesTheNext) {
  EXPECT_EQ(joined_borders({{2}, {}}, {{8}, {3}}), (PartBorders{{2, 8}, {3}}));
  EXPECT_EQ(joined_borders({{2, 8}}, {{4}}), (PartBorders{{2, 4, 8}}));
  EXPECT_EQ(joined_borders({{2}}, {{2}}), (PartBorders{{2}}));
  EXPECT_EQ(joined_borders({{2}}, {{3}}), std::nullopt);
  EXPECT_EQ(joined_borders({{2, 12}}, {{4, 6}}), std::nullopt);
  EXPECT_EQ(joined_borders({{}, {2}}, {{}, {3}}), std::nullopt);
}

// A layout that places whole axes is in the space of its own borders, and in those of any other borders joined with
// them.
TEST(PartBordersTest, SpacesHoldTheLayoutsWithTheirBorders) {
  const Shape shape = {24, 36};
  constexpr std::uint64_t kSeed = 5;
  Random random(kSeed);
  std::size_t joins = 0, differ = 0;
  for (int i = 0; i < 2000; ++i) {
    TensorLayout ends[2];
    for (TensorLayout& end : ends) {
      end = random_layout(kBordersMesh, shape, random, false, true);
      if (end.reduction != Reduction::kSum) end.partial.clear(), end.reduction = Reduction::kSum;
    }
    const std::string name = to_string(ends[0], kBordersMesh) + " and " + to_string(ends[1], kBordersMesh);
    const auto check = [&](const PartBorders& borders, const TensorLayout& layout) {
      const LayoutSpace space = space_of_pieces(whole_axes(kBordersMesh), borders, shape, kBordersMesh.num_devices());
      const std::optional<Placement> placement = space.encode(layout, shape);
      ASSERT_TRUE(placement) << to_string(layout, kBordersMesh) << " of " << name << ", seed " << kSeed;
      EXPECT_EQ(space.decode(*placement, shape), layout) << name << ", seed " << kSeed;
    };
    const PartBorders first = part_borders(ends[0], shape);
    const PartBorders second = part_borders(ends[1], shape);
    check(first, ends[0]);
    check(second, ends[1]);
    const std::optional<PartBorders> both = joined_borders(first, second);
    if (!both) {
      ++differ;
      continue;
    }
    ++joins;
    // A piece that crosses a border of the other end has no place between the borders.
    const auto crosses = [&](const TensorLayout& layout) {
      return !space_of_pieces(whole_axes(kBordersMesh), *both, shape, kBordersMesh.num_devices()).encode(layout, shape);
    };
    if (first == second) {
      EXPECT_FALSE(crosses(ends[0]));
      EXPECT_FALSE(crosses(ends[1]));
    }
  }
  EXPECT_GT(joins, 50u);
  EXPECT_GT(differ, 2u);
}

// 6 as 2 x 3 and as 3 x 2: the borders cannot be joined, the rows are in one space.
TEST(PartBordersTest, RowsHoldWhatHasNoCommonRefinement) {
  const Shape shape = {6};
  const TensorLayout x_first = parse_layout("[{x, y}]", kBordersMesh);
  const TensorLayout y_first = parse_layout("[{y, x}]", kBordersMesh);
  const LayoutSpace parts = space_of_pieces(whole_axes(kBordersMesh), {{2}}, shape, kBordersMesh.num_devices());
  EXPECT_TRUE(parts.encode(x_first, shape));
  EXPECT_FALSE(parts.encode(y_first, shape));
  const LayoutSpace rows = space_of_rows(parts, shape, kBordersMesh.num_devices());
  for (const TensorLayout& layout : {x_first, y_first}) {
    const std::optional<Placement> placement = rows.encode(layout, shape);
    ASSERT_TRUE(placement);
    EXPECT_EQ(rows.decode(*placement, shape), layout);
  }
  EXPECT_EQ(space_of_rows(parts, {5}, kBordersMesh.num_devices()).slots,
            std::vector<Slot>{});  // no device could shard it
}

}  // namespace
}  // namespace shardplan
