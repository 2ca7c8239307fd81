#include "layouts/redistribution/search/layout_space.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

const DeviceMesh kSpaceMesh = DeviceMesh::parse("x=2,y=4");
const AxisRef kWholeX{0, 1, 2};
const AxisRef kMajorY{1, 1, 2};
const AxisRef kMinorY{1, 2, 2};

// x, y:(1)2 and y:(2)2, one slot for each dimension of a matrix.
TEST(LayoutSpaceTest, TheExampleOfTheHeader) {
  const LayoutSpace space{{kWholeX, kMajorY, kMinorY}, {{0, 8, false}, {1, 8, false}}, {Reduction::kSum}};
  const auto encoded = [&](const char* layout) { return space.encode(parse_layout(layout, kSpaceMesh), {8, 8}); };
  Placement mixed;
  mixed.positions[0] = Placement::in_slot(0, 0);
  mixed.positions[1] = Placement::in_slot(1, 0);
  mixed.positions[2] = Placement::in_slot(0, 1);
  EXPECT_EQ(encoded("[{x, y:(2)2}, {y:(1)2}]"), mixed);
  Placement halves;
  halves.positions[0] = Placement::in_slot(0, 0);
  halves.positions[1] = Placement::in_slot(1, 0);
  halves.positions[2] = Placement::in_slot(1, 1);
  EXPECT_EQ(encoded("[{x}, {y}]"), halves);
  Placement partial;
  partial.positions[1] = Placement::kPartial;
  EXPECT_EQ(encoded("[{}, {}] unreduced={y:(1)2}"), partial);
  EXPECT_EQ(encoded("[{}, {}]"), Placement());
}

TEST(LayoutSpaceTest, OtherLayoutsAreNotInIt) {
  const LayoutSpace whole{{kWholeX, {1, 1, 4}}, {{0, 8, false}, {1, 8, false}}, {Reduction::kSum}};
  const auto is_in = [&](const LayoutSpace& space, const char* layout) {
    return space.encode(parse_layout(layout, kSpaceMesh), {8, 8}).has_value();
  };
  EXPECT_TRUE(is_in(whole, "[{y, x}, {}]"));
  EXPECT_FALSE(is_in(whole, "[{y:(1)2}, {}]"));  // half a piece
  EXPECT_FALSE(is_in(whole, "[{}, {}] unreduced={y:(2)2}"));
  EXPECT_FALSE(is_in(whole, "[{}, {}] unreduced={x} unreduced_kind=max"));  // a reduction that it does not have
  EXPECT_FALSE(is_in(whole, "[(2:{}, 4:{x}), {}]"));                        // no digit begins there
  const LayoutSpace digits{{kWholeX, {1, 1, 4}}, {{0, 2, true}, {0, 4, false}}, {}};
  EXPECT_TRUE(is_in(digits, "[(2:{}, 4:{x}), {}]"));
  EXPECT_TRUE(is_in(digits, "[(2:{x}, 4:{y}), {}]"));
  EXPECT_FALSE(is_in(digits, "[{y}, {}]"));  // crosses the digits' border
  EXPECT_FALSE(is_in(digits, "[{}, {x}]"));  // no slot in that dimension
  EXPECT_FALSE(is_in(digits, "[{}, {}] unreduced={x}"));
}

// There are as many placements as layouts of a tensor, and each layout is read back unchanged.
TEST(LayoutSpaceTest, PlacementsAreLayouts) {
  const Shape shape = {16, 24};
  const std::vector<AxisRef> pieces = {kWholeX, kMajorY, kMinorY};
  const LayoutSpace space{pieces, {{0, 8, false}, {1, 8, false}}, {Reduction::kSum, Reduction::kMax}};
  std::set<Placement> placements;
  std::set<std::string> layouts;
  for (const TensorLayout& layout : all_layouts(kSpaceMesh, shape, pieces, space.reductions)) {
    const std::optional<Placement> placement = space.encode(layout, shape);
    ASSERT_TRUE(placement) << to_string(layout, kSpaceMesh);
    EXPECT_EQ(space.decode(*placement, shape), layout) << to_string(layout, kSpaceMesh);
    placements.insert(*placement);
    layouts.insert(to_string(layout, kSpaceMesh));
  }
  EXPECT_EQ(placements.size(), layouts.size());
  EXPECT_GT(layouts.size(), 100u);
}

// If all pieces have one size and fit anywhere, the estimate is the number of layouts.
TEST(LayoutSpaceTest, CountsItsPlacements) {
  const std::vector<AxisRef> pieces = {kWholeX, kMajorY, kMinorY};
  const auto count = [&](const Shape& shape, const std::vector<Reduction>& reductions) {
    std::set<std::string> layouts;
    for (const TensorLayout& layout : all_layouts(kSpaceMesh, shape, pieces, reductions)) {
      layouts.insert(to_string(layout, kSpaceMesh));
    }
    return static_cast<std::int64_t>(layouts.size());
  };
  EXPECT_EQ(num_placements({pieces, {{0, 8, false}}, {}}), count({8}, {}));
  EXPECT_EQ(num_placements({pieces, {{0, 8, false}, {1, 8, false}}, {}}), count({8, 16}, {}));
  EXPECT_EQ(num_placements({pieces, {{0, 8, false}, {1, 8, false}}, {Reduction::kSum}}),
            count({8, 16}, {Reduction::kSum}));
  // Two digits that each have room for one piece: none, one of three pieces in one of two digits, or an ordered pair.
  EXPECT_EQ(num_placements({pieces, {{0, 2, true}, {0, 2, true}}, {}}), 1 + 3 * 2 + 3 * 2);
  std::vector<Slot> many(40, {0, 2, true});
  EXPECT_EQ(num_placements({std::vector<AxisRef>(16, kWholeX), many, {}}), 1'000'000'000'000'000);
}

}  // namespace
}  // namespace shardplan
