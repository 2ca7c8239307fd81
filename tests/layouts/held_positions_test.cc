#include "layouts/held_positions.h"

#include <gtest/gtest.h>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

/// Compares everything that the class says with the list of `held_indices`.
void expect_same_positions(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::int64_t point) {
  const std::vector<std::vector<std::int64_t>> lists = held_indices(layout, mesh, shape, point);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const HeldPositions held(layout.dimensions[d], mesh, shape[d], point);
    const std::vector<std::int64_t>& list = lists[d];
    ASSERT_EQ(held.size(), static_cast<std::int64_t>(list.size()));
    std::int64_t before = 0;
    for (std::int64_t position = 0; position <= shape[d]; ++position) {
      EXPECT_EQ(held.num_before(position), before) << position;
      if (before < held.size() && held[before] == position) ++before;
    }
    EXPECT_EQ(before, held.size());
    const std::vector<std::int64_t> blocks = held.block_sizes();
    for (std::int64_t i = 1; i < held.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(held[i], list[at]);
      EXPECT_EQ(list[at] > list[at - 1] + 1, i % held.interval_length() == 0) << i;
      for (const std::int64_t block : blocks) {
        if (i % block != 0) continue;
        EXPECT_EQ(list[at] - list[at - 1], held[block] - held[block - 1]) << i;
        break;  // the largest that divides
      }
    }
  }
}

TEST(HeldPositionsTest, SaysWhatTheListSays) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4,z=3");
  const Shape shape = {48, 24};
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const TensorLayout layout = random_layout(mesh, shape, random, true, true);
    SCOPED_TRACE(to_string(layout, mesh));
    expect_same_positions(layout, mesh, shape,
                          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(mesh.num_devices()))));
  }
}

TEST(HeldPositionsTest, StopsBeforeThePaddingOfUnequalPieces) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2");
  for (const char* layout : {"[{y, x}]", "[{y}]", "[{}]"}) {
    for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
      expect_same_positions(parse_layout(layout, mesh), mesh, {7}, point);
    }
  }
}

TEST(HeldPositionsTest, TakesNoTimeForLongDimensions) {
  const DeviceMesh mesh = DeviceMesh::parse("x=8");
  const std::int64_t extent = std::int64_t{3} << 50;
  const HeldPositions held(parse_layout("[(3:{}, 1125899906842624:{x})]", mesh).dimensions[0], mesh, extent, 7);
  EXPECT_EQ(held.size(), extent / 8);
  EXPECT_EQ(held[held.size() - 1], extent - 1);
  EXPECT_EQ(held.num_before(extent - 1), held.size() - 1);
  EXPECT_EQ(held.interval_length(), std::int64_t{1} << 47);
}

}  // namespace
}  // namespace shardplan
