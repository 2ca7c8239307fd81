// Measured times of collectives (`tables` of a cluster file): of groups that were measured, and of others.
#include <gtest/gtest.h>

#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/hierarchical_costs.h"

namespace shardplan {
namespace {

constexpr Picoseconds kMicrosecond = 1'000'000;

/// 4 nodes with 10 us and 10 GB/s between them, each of 8 devices with 1 us and 100 GB/s.
Cluster nodes_of_eight() {
  Cluster cluster;
  cluster.name = "made-up";
  cluster.levels.resize(2);
  cluster.levels[0].name = "node";
  cluster.levels[0].count = 4;
  cluster.levels[0].latency = 10 * kMicrosecond;
  cluster.levels[0].bandwidth = 10'000'000'000;
  cluster.levels[1].name = "nvlink";
  cluster.levels[1].count = 8;
  cluster.levels[1].latency = kMicrosecond;
  cluster.levels[1].bandwidth = 100'000'000'000;
  return cluster;
}

TEST(MeasuredTables, MeasuredTablesReplaceTheFormulaAlongTheirLevel) {
  Cluster cluster = nodes_of_eight();
  cluster.tables.push_back({CollectiveKind::kAllReduce,
                            "node",
                            4,
                            0,
                            {{1000, 50 * kMicrosecond}, {3000, 90 * kMicrosecond}, {4000, 90 * kMicrosecond}}});
  const HierarchicalCosts costs(cluster, make_mesh(cluster));
  const std::vector<AxisRef> node = {{0, 1, 4}};
  const struct {
    Bytes bytes;
    Picoseconds time;
  } kCases[] = {{1000, 50 * kMicrosecond}, {1001, 50 * kMicrosecond + 20'000}, {2000, 70 * kMicrosecond},
                {3000, 90 * kMicrosecond}, {3500, 90 * kMicrosecond},          {4000, 90 * kMicrosecond},
                {8000, 180 * kMicrosecond}};
  for (const auto& test : kCases)
    EXPECT_EQ(costs.time(CollectiveKind::kAllReduce, node, test.bytes), test.time) << test.bytes;
  // Over both levels: nvlink scatters 16000 B (7 us + 140 ns), node reduces 2000 B by the table, nvlink gathers.
  EXPECT_EQ(costs.time(CollectiveKind::kAllReduce, {{0, 1, 4}, {1, 1, 8}}, 16'000),
            2 * (7 * kMicrosecond + 140'000) + 70 * kMicrosecond);
}

// By hand: a ring over 4 takes 60 us of start-ups and 150 ns for 1000 B; measured are 30 us and 20 us for 1000 B. So a
// start-up takes half, and a byte 133 1/3 times as long.
TEST(MeasuredTables, WhatNoTableMeasuresIsScaledByThoseOfItsLevel) {
  Cluster cluster = nodes_of_eight();
  cluster.tables.push_back(
      {CollectiveKind::kAllReduce, "node", 4, 0, {{1000, 50 * kMicrosecond}, {3000, 90 * kMicrosecond}}});
  const HierarchicalCosts costs(cluster, make_mesh(cluster));
  const auto expect_near = [](Picoseconds time, Picoseconds expected) {
    EXPECT_NEAR(static_cast<double>(time), static_cast<double>(expected), 1e-4 * static_cast<double>(expected));
  };
  const Picoseconds per_kilobyte = 100'000 * 400 / 3;  // 100 ns by the formula
  expect_near(costs.time(CollectiveKind::kAllReduce, {{0, 1, 2}}, 2000), 2 * (5 * kMicrosecond + per_kilobyte));
  expect_near(costs.time(CollectiveKind::kAllGather, {{0, 1, 4}}, 4000), 3 * (5 * kMicrosecond + per_kilobyte));
  // Two collectives over the same links are no way around the table.
  EXPECT_GE(2 * costs.time(CollectiveKind::kAllGather, {{0, 1, 4}}, 3000) + kMicrosecond,
            costs.time(CollectiveKind::kAllReduce, {{0, 1, 4}}, 3000));
  // Another level is as it was.
  EXPECT_EQ(costs.time(CollectiveKind::kAllGather, {{1, 1, 8}}, 16'000), 7 * kMicrosecond + 140'000);
  // One measurement scales both alike: by the formula it takes 61.2 us.
  cluster.tables = {{CollectiveKind::kAllReduce, "node", 4, 0, {{8000, 4 * 61'200'000}}}};
  const HierarchicalCosts of_one(cluster, make_mesh(cluster));
  expect_near(of_one.time(CollectiveKind::kAllReduce, {{0, 1, 2}}, 2000), 4 * 20'200'000);
}

TEST(MeasuredTables, BelowTheFirstSizeATableFallsToTheStartUp) {
  Cluster cluster = nodes_of_eight();
  // By the formula 30 us and 75 us for a megabyte; measured is that and the launch.
  cluster.collectives.launch = 5 * kMicrosecond;
  cluster.tables = {{CollectiveKind::kAllGather, "node", 4, 0, {{1'000'000, 110 * kMicrosecond}}}};
  const HierarchicalCosts costs(cluster, make_mesh(cluster));
  const auto time = [&](Bytes bytes) { return costs.time(CollectiveKind::kAllGather, {{0, 1, 4}}, bytes); };
  EXPECT_NEAR(static_cast<double>(time(0)), 35e6, 1e3);
  EXPECT_NEAR(static_cast<double>(time(500'000)), 72.5e6, 1e3);
  EXPECT_EQ(time(1'000'000), 110 * kMicrosecond);
}

// What is measured is a level of the cluster: ranks that stand elsewhere do not make another one faster.
TEST(MeasuredTables, TablesAreOfLevelsWhereverRanksStand) {
  Cluster cluster = nodes_of_eight();
  cluster.tables = {
      {CollectiveKind::kAllGather, "nvlink", 8, 0, {{16'000, 2 * (7 * kMicrosecond + 140'000)}}}};  // half as fast
  const DeviceMesh mesh({{"a", 4}, {"b", 8}});
  Cluster mixed = cluster;
  for (std::int64_t rank = 0; rank < 32; ++rank) mixed.position_of_rank.push_back(rank % 4 * 8 + rank / 4);
  const HierarchicalCosts in_order(cluster, mesh), across(mixed, DeviceMesh({{"b", 8}, {"a", 4}}));
  for (const Bytes bytes : {1'000, 16'000, 1'000'000}) {
    EXPECT_EQ(in_order.time(CollectiveKind::kReduceScatter, {{0, 1, 4}}, bytes),
              across.time(CollectiveKind::kReduceScatter, {{1, 1, 4}}, bytes));
    EXPECT_EQ(in_order.time(CollectiveKind::kReduceScatter, {{1, 1, 8}}, bytes),
              across.time(CollectiveKind::kReduceScatter, {{0, 1, 8}}, bytes));
  }
}

// A table that says what the formula says changes nothing: neither what each device takes nor other algorithms of groups
// over several levels.
TEST(MeasuredTables, ATableOfWhatTheFormulaSaysChangesNothing) {
  Cluster cluster = nodes_of_eight();
  cluster.collectives = {
      .launch = 3 * kMicrosecond, .per_device = kMicrosecond, .direct_all_reduce = 0, .has_rings_and_trees = true};
  const DeviceMesh mesh = make_mesh(cluster);
  const HierarchicalCosts plain(cluster, mesh);
  CollectiveTable table{CollectiveKind::kAllGather, "nvlink", 8, 0, {}};
  for (const Bytes bytes : {1'000, 1'000'000, 1'000'000'000}) {
    table.points.emplace_back(bytes, plain.time(CollectiveKind::kAllGather, {{1, 1, 8}}, bytes));
  }
  cluster.tables = {table};
  const HierarchicalCosts measured(cluster, mesh);
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
    for (const std::vector<AxisRef>& axes :
         {std::vector<AxisRef>{{1, 1, 8}}, {{1, 1, 2}}, {{0, 1, 4}}, {{0, 1, 4}, {1, 1, 8}}}) {
      for (const Bytes bytes : {2'000, 5'000'000, 400'000'000}) {
        const auto before = static_cast<double>(plain.time(kind, axes, bytes));
        EXPECT_NEAR(static_cast<double>(measured.time(kind, axes, bytes)), before, 1e-3 * before);
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
