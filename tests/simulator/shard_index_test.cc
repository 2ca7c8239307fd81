#include "simulator/execute/shard_index.h"

#include <gtest/gtest.h>

#include <set>

#include "layouts/uneven.h"
#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

/// Every element of every device's shard, looked up in another layout and back.
TEST(ShardIndexTest, FindsEveryElementUnderAnyOtherLayout) {
  Random random(5);
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=4");
  const Shape shape{8, 16};
  for (int i = 0; i < 100; ++i) {
    const TensorLayout one = random_layout(mesh, shape, random, true, true);
    const TensorLayout other = random_layout(mesh, shape, random, true, true);
    SCOPED_TRACE(to_string(one, mesh) + " and " + to_string(other, mesh));
    const ShardIndex from(one, mesh, shape), to(other, mesh, shape);
    EXPECT_EQ(from.num_shards(), num_shards(one));
    EXPECT_EQ(from.shard_size(), num_elements(local_shape(one, shape)));
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (std::int64_t shard = 0; shard < from.num_shards(); ++shard) {
      std::int64_t next = 0;
      for_each_element(from, shard, to, [&](std::int64_t offset, const ShardIndex::Place& place) {
        EXPECT_EQ(offset, next++) << "row-major, nothing left out";
        EXPECT_TRUE(seen.emplace(place.shard, place.offset).second) << "two elements at one place";
        EXPECT_LT(place.shard, to.num_shards());
        EXPECT_LT(place.offset, to.shard_size());
      });
      EXPECT_EQ(next, from.shard_size());
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), num_elements(shape));
  }
}

/// A device's shard holds what the layout assigns to the device.
TEST(ShardIndexTest, ShardsHoldTheDevicesPositions) {
  Random random(6);
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=4");
  for (int i = 0; i < 100; ++i) {
    const Shape shape{8, 16};
    const TensorLayout layout = random_layout(mesh, shape, random, true, true);
    const ShardIndex index(layout, mesh, shape);
    for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
      const auto held = held_indices(layout, mesh, shape, point);
      for (std::size_t d = 0; d < shape.size(); ++d) EXPECT_EQ(index.held(index.shard(point), d), held[d]);
    }
  }
}

/// Ten rows in pieces of 3, 3, 3, 1: buffers hold three rows, two of which are not elements on the last device.
TEST(ShardIndexTest, PaddingIsNoElement) {
  const DeviceMesh mesh = DeviceMesh::parse("y=4");
  const ShardIndex uneven(parse_layout("[{y}, {}]", mesh), mesh, {10, 2});
  const ShardIndex whole(parse_layout("[{}, {}]", mesh), mesh, {10, 2});
  EXPECT_EQ(uneven.shard_size(), 6);
  std::vector<std::int64_t> offsets, places;
  for_each_element(uneven, uneven.shard(3), whole, [&](std::int64_t offset, const ShardIndex::Place& place) {
    offsets.push_back(offset);
    places.push_back(place.offset);
  });
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(places, (std::vector<std::int64_t>{18, 19}));
}

}  // namespace
}  // namespace shardplan
