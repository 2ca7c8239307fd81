#include "layouts/uneven.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

struct SplitCase {
  std::int64_t extent;
  std::int64_t pieces;
  bool can_be_split;
};
const SplitCase kSplits[] = {
    {12, 4, true},     // 3 each
    {10, 4, true},     // 3 3 3 1
    {10, 8, false},    // 2 2 2 2 2 and three empty
    {12, 5, false},    // 3 3 3 3 and one empty
    {15, 8, true},     // seven of 2 and 1
    {2, 4, false},     // fewer positions than pieces
    {50257, 8, true},  // seven of 6283 and 6276
    {197, 4, true},    // 50 50 50 47
    {0, 4, true},
};

TEST(UnevenTest, NoPieceMayBeEmpty) {
  for (const SplitCase& c : kSplits) {
    EXPECT_EQ(can_be_split(c.extent, c.pieces), c.can_be_split) << c.extent << " in " << c.pieces;
  }
}

struct NestCase {
  std::int64_t extent;
  std::int64_t pieces;
  std::int64_t fewer;
  bool nests;
};
const NestCase kNests[] = {
    {12, 4, 2, true}, {15, 8, 4, true},     {15, 8, 2, true},    {10, 4, 2, false},
    {10, 4, 1, true}, {50257, 8, 4, false}, {50257, 8, 1, true}, {7, 4, 2, true},
};

TEST(UnevenTest, LargerPiecesAreRowsOfWholeSmallerOnes) {
  for (const NestCase& c : kNests) {
    EXPECT_EQ(nests(c.extent, c.pieces, c.fewer), c.nests) << c.extent << " in " << c.pieces << " and " << c.fewer;
  }
}

TEST(UnevenTest, PiecesAreIntervalsAndBuffersHoldTheLargest) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2");
  const Shape shape = {7, 3};
  const TensorLayout layout = parse_layout("[{y, x}, {}]", mesh);
  EXPECT_EQ(check_uneven_layout(layout, mesh, shape), "");
  EXPECT_TRUE(is_uneven(layout, shape));
  EXPECT_EQ(local_shape(layout, shape), (Shape{2, 3}));
  EXPECT_EQ(canonical(layout, mesh, shape), layout);
  using Positions = std::vector<std::int64_t>;
  const Positions expected[] = {{0, 1}, {4, 5}, {2, 3}, {6}};  // by rank: y is major
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(held_indices(layout, mesh, shape, rank)[0], expected[rank]) << rank;
  }
}

TEST(UnevenTest, SaysWhatIsWrong) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const auto fault = [&](const char* layout, const Shape& shape) {
    return check_uneven_layout(parse_layout(layout, mesh), mesh, shape);
  };
  EXPECT_EQ(fault("[{x, y}]", {10}),
            "dimension 0 of size 10 cannot be split into 8 by {x, y}: pieces of 2 would leave 3 of them empty");
  EXPECT_EQ(fault("[{x, y}]", {7}), "dimension 0 of size 7 cannot be split into 8 by {x, y}");
  EXPECT_EQ(fault("[(2:{}, 5:{y})]", {10}), "the part of size 5 of dimension 0 cannot be split into 4 by {y}");
  EXPECT_EQ(fault("[{y}]", {10, 2}), "the layout has 1 dimensions, the tensor [10, 2] has 2");
  EXPECT_EQ(fault("[{y}, {x}]", {10, 5}), "");
}

}  // namespace
}  // namespace shardplan
