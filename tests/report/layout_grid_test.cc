#include "report/text/layout_grid.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

std::string grid(const char* axes, const char* layout, const Shape& shape) {
  const DeviceMesh mesh = DeviceMesh::parse(axes);
  return layout_grid(canonical(parse_layout(layout, mesh), mesh, shape), mesh, shape, 2);
}

TEST(LayoutGridTest, ShowsWhoHoldsWhatOfTwoDimensions) {
  EXPECT_EQ(grid("x=2, y=4", "[{y}, {x}]", {16, 8}),
            "  dim 0 \\ dim 1  0-3  4-7\n"
            "            0-3    0    4\n"
            "            4-7    1    5\n"
            "           8-11    2    6\n"
            "          12-15    3    7\n");
}

TEST(LayoutGridTest, ListsAllHoldersOfAPiece) {
  EXPECT_EQ(grid("x=2, y=2", "[{y}, {}]", {4, 8}),
            "  dim 0  ranks\n"
            "    0-1    0,2\n"
            "    2-3    1,3\n");
}

TEST(LayoutGridTest, ShowsPiecesThatAreNotInOneRun) {
  EXPECT_EQ(grid("x=2", "[(2:{}, 4:{x}), {}]", {8, 8}),
            "    dim 0  ranks\n"
            "  0-1,4-5      0\n"
            "  2-3,6-7      1\n");
}

TEST(LayoutGridTest, SaysWhatIsFixedAndWhatIsPartial) {
  EXPECT_EQ(grid("x=2, y=2, z=2", "[{x}, {y}, {z}]", {4, 4, 4}),
            "  dim 0 \\ dim 1  0-1  2-3\n"
            "            0-1    0    2\n"
            "            2-3    4    6\n"
            "  at 0-1 of dim 2\n");
  EXPECT_EQ(grid("x=2, y=2", "[{x}] unreduced={y}", {4}),
            "  dim 0  ranks\n"
            "    0-1    0-1\n"
            "    2-3    2-3\n"
            "  each rank holds one summand over {y}\n");
}

TEST(LayoutGridTest, IsEmptyWhereNothingIsShardedOrTooMuch) {
  EXPECT_EQ(grid("x=2", "[{}, {}]", {4, 4}), "");
  EXPECT_EQ(grid("x=64", "[{x}]", {64}), "");
}

}  // namespace
}  // namespace shardplan
