#include "planner/overlap/joined_costs.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/roofline_costs.h"

namespace shardplan {
namespace {

constexpr CollectiveKind kJoined[] = {CollectiveKind::kAllGather, CollectiveKind::kAllReduce,
                                      CollectiveKind::kReduceScatter};

/// Every list of whole axes of the mesh.
std::vector<std::vector<AxisRef>> groups_of(const DeviceMesh& mesh) {
  std::vector<std::vector<AxisRef>> groups;
  for (std::size_t subset = 1; subset < std::size_t{1} << mesh.axes().size(); ++subset) {
    std::vector<AxisRef> axes;
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
      if ((subset >> axis & 1) != 0 && mesh.axes()[axis].size > 1) axes.push_back(mesh.whole(axis));
    }
    if (!axes.empty()) groups.push_back(axes);
  }
  return groups;
}

void expect_least_shares(const Cluster& cluster, bool is_measured) {
  const RooflineCosts costs(cluster, make_mesh(cluster));
  const JoinedCosts least(costs, JoinedCosts::kAnyLevel, is_measured);
  Random random(1);
  for (const std::vector<AxisRef>& axes : groups_of(costs.mesh())) {
    for (const CollectiveKind kind : kJoined) {
      for (int i = 0; i < 200; ++i) {
        const Bytes member = static_cast<Bytes>(1 + random.below(std::uint64_t{1} << random.below(34)));
        const Bytes bucket = member + static_cast<Bytes>(random.below(std::uint64_t{1} << random.below(38)));
        const Picoseconds time = least.time(kind, axes, member);
        const Int128 share = Int128{costs.collectives()->time(kind, axes, bucket)} * member / bucket;
        EXPECT_LE(time, static_cast<Picoseconds>(share)) << to_string(kind) << " " << member << " of " << bucket;
        EXPECT_LE(time, costs.collectives()->time(kind, axes, member));
      }
    }
  }
}

TEST(JoinedCostsTest, NoBucketGivesAMemberLess) {
  for (const char* name : {"ascend-910x4", "dgx-a100x6", "dgx-h100x3"}) {
    SCOPED_TRACE(name);
    expect_least_shares(read_cluster(name), false);
    expect_least_shares(read_cluster(name), true);
  }
}

TEST(JoinedCostsTest, MeasuredTimesNeedNotBeConcave) {
  Cluster cluster = read_cluster("ascend-910");
  CollectiveTable table;
  table.kind = CollectiveKind::kAllReduce;
  table.level = "hccs";
  table.devices = 4;
  table.points = {{1000, 1'000'000}, {100'000, 90'000'000}, {200'000, 91'000'000}, {1'000'000, 900'000'000}};
  cluster.tables.push_back(table);
  expect_least_shares(cluster, true);
}

TEST(JoinedCostsTest, OtherLevelsTakeNothing) {
  const Cluster cluster = read_cluster("ascend-910");
  const RooflineCosts costs(cluster, make_mesh(cluster));
  for (const std::vector<AxisRef>& axes : groups_of(costs.mesh())) {
    for (int level = 0; level < 3; ++level) {
      const JoinedCosts least(costs, level, false);
      const bool is_used = (costs.links(axes) >> level & 1) != 0;
      EXPECT_EQ(least.time(CollectiveKind::kAllGather, axes, 1 << 20) > 0, is_used);
      const Picoseconds alone = costs.collectives()->time(CollectiveKind::kAllToAll, axes, 1 << 20);
      EXPECT_EQ(least.time(CollectiveKind::kAllToAll, axes, 1 << 20), is_used ? alone : 0);
    }
  }
}

}  // namespace
}  // namespace shardplan
