#include "planner/overlap/joined_costs.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>

#include "base/random.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/roofline_costs.h"
#include "layouts/redistribution/redistribution_planner.h"

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
  const JoinedCosts least(costs, JoinedCosts::Kinds::kGathersToo, JoinedCosts::kAnyLevel, is_measured);
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
      const JoinedCosts least(costs, JoinedCosts::Kinds::kGathersToo, level, false);
      const bool is_used = (costs.links(axes) >> level & 1) != 0;
      EXPECT_EQ(least.time(CollectiveKind::kAllGather, axes, 1 << 20) > 0, is_used);
      const Picoseconds alone = costs.collectives()->time(CollectiveKind::kAllToAll, axes, 1 << 20);
      EXPECT_EQ(least.time(CollectiveKind::kAllToAll, axes, 1 << 20), is_used ? alone : 0);
    }
  }
}

TEST(JoinedCostsTest, GathersBehindGradientsDoNotJoin) {
  const Cluster cluster = read_cluster("ascend-910");
  const RooflineCosts costs(cluster, make_mesh(cluster));
  const JoinedCosts all(costs, JoinedCosts::Kinds::kGathersToo, JoinedCosts::kAnyLevel, false);
  const JoinedCosts reductions(costs, JoinedCosts::Kinds::kReductions, JoinedCosts::kAnyLevel, false);
  for (const std::vector<AxisRef>& axes : groups_of(costs.mesh())) {
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter}) {
      EXPECT_EQ(reductions.time(kind, axes, 1 << 20), all.time(kind, axes, 1 << 20));
    }
    EXPECT_EQ(reductions.time(CollectiveKind::kAllGather, axes, 1 << 20),
              costs.collectives()->time(CollectiveKind::kAllGather, axes, 1 << 20));
    EXPECT_LT(all.time(CollectiveKind::kAllGather, axes, 1 << 20),
              reductions.time(CollectiveKind::kAllGather, axes, 1 << 20));
  }
}

TEST(JoinedCostsTest, LeadingClassesTakeTheirOwnTime) {
  const Cluster cluster = read_cluster("ascend-910");
  const RooflineCosts costs(cluster, make_mesh(cluster));
  using Kinds = JoinedCosts::Kinds;
  const JoinedCosts joined(costs, Kinds::kGathersToo, JoinedCosts::kAnyLevel, false);
  const auto groups = groups_of(costs.mesh());
  const BucketClass leading{CollectiveKind::kAllReduce, groups.front()};
  const JoinedCosts one(costs, Kinds::kGathersToo, JoinedCosts::kAnyLevel, false, {{leading}, false});
  const JoinedCosts others(costs, Kinds::kGathersToo, JoinedCosts::kAnyLevel, false, {{leading}, true});
  for (const std::vector<AxisRef>& axes : groups) {
    for (const CollectiveKind kind : kJoined) {
      const Picoseconds alone = costs.collectives()->time(kind, axes, 1 << 20),
                        share = joined.time(kind, axes, 1 << 20);
      EXPECT_LT(share, alone);
      const bool leads = BucketClass{kind, axes} == leading;
      EXPECT_EQ(one.time(kind, axes, 1 << 20), leads ? alone : share);
      EXPECT_EQ(others.time(kind, axes, 1 << 20), leads ? share : alone);
    }
  }
}

/// The times of redistributions of random layouts, in total and on one level of links.
TEST(CountedOnPathTest, ShortestPathsKeepTheirTimesOnLevels) {
  const Cluster cluster = read_cluster("dgx-a100x4");
  const RooflineCosts costs(cluster, make_mesh(cluster));
  const DeviceMesh& mesh = costs.mesh();
  const RedistributionOptions options;
  const std::shared_ptr<const CollectiveCosts> alone = costs.collectives();
  RedistributionPlanner real(mesh, alone, options);
  enum class Which { kAll, kOnLevel, kOffLevel };
  std::map<std::pair<Which, int>, std::unique_ptr<RedistributionPlanner>> counting;
  for (const Which which : {Which::kAll, Which::kOnLevel, Which::kOffLevel}) {
    for (int level = 0; level < 2; ++level) {
      std::shared_ptr<const CollectiveCosts> counted = alone;
      if (which != Which::kAll) {
        counted = std::make_shared<const CostsOnLinks>(costs, alone, level, which == Which::kOnLevel);
      }
      counting[{which, level}] =
          std::make_unique<RedistributionPlanner>(mesh, std::make_shared<const CountedOnPath>(alone, counted), options);
    }
  }
  Random random(1);
  const Shape shape = {256, 512};
  const auto random_layout = [&] {
    TensorLayout layout = TensorLayout::replicated(2);
    for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
      const std::uint64_t to = random.below(4);
      if (to < 2) layout.dimensions[to].parts.front().axes.push_back(mesh.whole(axis));
      if (to == 2) layout.partial.push_back(mesh.whole(axis));
    }
    return canonical(layout, mesh, shape);
  };
  int num_on_both = 0, num_equal = 0;
  for (int i = 0; i < 300; ++i) {
    const TensorLayout from = random_layout(), to = random_layout();
    const Redistribution& way = real.plan(from, to, shape, 2);
    for (auto& [which, planner] : counting) {
      Picoseconds sum = 0, elsewhere = 0;
      for (const CollectiveStep& step : way.steps) {
        const bool is_on = (costs.links(step.axes) >> which.second & 1) != 0;
        const bool counts = which.first == Which::kAll || is_on == (which.first == Which::kOnLevel);
        (counts ? sum : elsewhere) += step.time;
      }
      const Picoseconds counted = CountedOnPath::counted(planner->time(from, to, shape, 2), way.time);
      EXPECT_LE(counted, sum);
      if (which.first == Which::kAll) {
        EXPECT_EQ(counted, way.time);
      }
      if (sum > 0 && elsewhere > 0) ++num_on_both;
      // If steps have start-ups, there is usually one shortest path.
      if (which.first == Which::kOnLevel && counted == sum) ++num_equal;
    }
  }
  EXPECT_GT(num_on_both, 50);
  EXPECT_GT(num_equal, 500);
}

TEST(CountedOnPathTest, WhatGaveUpCountsNothing) {
  constexpr Picoseconds kTime = 1'000'000;
  const Picoseconds shortest = kTime << 14;
  EXPECT_EQ(CountedOnPath::counted(shortest + 5, kTime), 5);
  EXPECT_EQ(CountedOnPath::counted(shortest - 5, kTime), 0);          // cut off
  EXPECT_EQ(CountedOnPath::counted(shortest + kTime + 1, kTime), 0);  // of a longer path
}

}  // namespace
}  // namespace shardplan
