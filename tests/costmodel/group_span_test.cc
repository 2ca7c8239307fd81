#include "costmodel/cluster/group_span.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

constexpr char kFourNodes[] = "dgx-a100x4";

TEST(GroupSpanTest, DescribesGroupsLevelByLevel) {
  const Cluster cluster = take_devices(read_cluster(kFourNodes), 16);
  const DeviceMesh mesh = DeviceMesh::parse("dp=4, mp=4");
  const GroupSpan mp = group_span(cluster, mesh, {}, {mesh.whole(1)});
  ASSERT_EQ(mp.levels.size(), 1u) << "four neighbours in a node";
  EXPECT_EQ(mp.levels[0].members, 4);
  const GroupSpan dp = group_span(cluster, mesh, {}, {mesh.whole(0)});
  ASSERT_EQ(dp.levels.size(), 2u);
  EXPECT_EQ(dp.levels[0].members, 2);
  EXPECT_EQ(dp.levels[0].below, 2) << "two of a group on each node";
  EXPECT_EQ(dp.levels[0].crossing_devices, 8);
  EXPECT_EQ(dp.levels[0].crossing_groups, 4);
  EXPECT_EQ(group_span(cluster, mesh, {}, {}), GroupSpan{}) << "no axes: each device alone";
}

}  // namespace
}  // namespace shardplan
