#include "layouts/dimension_layout.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

TEST(DimensionLayoutTest, CountsThePiecesOfAllParts) {
  const AxisRef x{0, 1, 2};
  const AxisRef minor_y{1, 2, 4};
  const AxisRef none{2, 1, 1};
  const struct {
    DimensionLayout dimension;
    std::int64_t pieces;
  } cases[] = {
      {{}, 1},
      {{{{0, {}}}}, 1},
      {{{{0, {none}}}}, 1},  // an axis of one device shards nothing
      {{{{0, {x, minor_y}}}}, 8},
      {{{{2, {x}}, {3, {}}, {4, {minor_y}}}}, 8},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.dimension.num_pieces(), c.pieces);
    EXPECT_EQ(c.dimension.is_sharded(), c.pieces > 1);
  }
}

// The count is the number of distinct places of devices along the dimension's axes.
TEST(DimensionLayoutTest, PiecesAreThePlacesAlongItsAxes) {
  const DeviceMesh mesh = DeviceMesh::parse("a=2,b=6,c=2");
  constexpr std::uint64_t kSeed = 11;
  Random random(kSeed);
  for (int i = 0; i < 200; ++i) {
    const TensorLayout layout = random_layout(mesh, {24, 12}, random, true, true);
    for (const DimensionLayout& dimension : layout.dimensions) {
      std::set<std::vector<std::int64_t>> places;
      for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
        std::vector<std::int64_t> place;
        for (const DimensionPart& part : dimension.parts) {
          for (const AxisRef& axis : part.axes) place.push_back(mesh.coordinate(point, axis));
        }
        places.insert(place);
      }
      EXPECT_EQ(dimension.num_pieces(), static_cast<std::int64_t>(places.size()))
          << to_string(layout, mesh) << ", seed " << kSeed;
    }
  }
}

}  // namespace
}  // namespace shardplan
