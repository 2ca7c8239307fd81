#include "costmodel/cluster/cluster.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/hierarchical_costs.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(ClusterTest, PresetsAreThoseOfTheConfigurations) {
  const Cluster ascend = read_cluster("ascend-910");
  EXPECT_EQ(ascend.num_devices(), 8);
  EXPECT_EQ(ascend.usable_bytes(), std::int64_t{30} << 30);
  EXPECT_EQ(ascend.device.flops.count(DataType::kBF16), 0u);
  EXPECT_EQ(make_mesh(ascend).to_string(), "pcie=2, hccs=4");
  EXPECT_EQ(make_mesh(read_cluster("ascend-910x2")).to_string(), "roce=2, pcie=2, hccs=4");
  EXPECT_EQ(make_mesh(read_cluster("dgx-a100x8")).to_string(), "ib=8, nvlink=8");
  EXPECT_EQ(read_cluster("dgx-h100x128").num_devices(), 1024);
  EXPECT_EQ(read_cluster("dgx-a100x8").name, "dgx-a100x8");
  EXPECT_EQ(make_mesh(read_cluster("gb200-nvl72x2")).to_string(), "ib=2, nvlink=72");
  EXPECT_EQ(make_mesh(take_devices(read_cluster("gb200-nvl72"), 64)).to_string(), "nvlink=64");
  for (const auto& [name, text] : cluster_presets()) {
    EXPECT_EQ(read_cluster("configs/clusters/" + name + ".yaml"), read_cluster(name));
  }
}

TEST(ClusterTest, WhatIsWrittenReadsBack) {
  for (const char* name : {"ascend-910", "ascend-910x2", "dgx-a100", "dgx-h100x7"}) {
    Cluster cluster = read_cluster(name);
    cluster.levels[0].contention_ppm = 500'000;
    cluster.levels[1].protocols = {{1'100'000, 250'000}, {2'500'000, 950'000}};
    cluster.levels[0].together = {900'000, 1'000'000};
    cluster.collectives = {.launch = 7'000'000,
                           .per_device = 20'000'000,
                           .direct_all_reduce = 6'500'000,
                           .has_rings_and_trees = true,
                           .collective_matmul = name[0] == 'd'};
    cluster.fusion = Fusion::kHandWritten;
    cluster.device.tf32_flops = 156'000'000'000'000;
    cluster.tf32 = Tf32::kConvolutions;
    cluster.tables.push_back(
        {CollectiveKind::kCollectivePermute, cluster.levels[1].name, 2, 0, {{1, 5}, {1024, 7'000'001}}});
    cluster.sources.emplace_back("odd key: #", "\"quotes\" \\ and: colons # and, [brackets]");
    const std::string text = write_cluster(cluster);
    Cluster again = read_cluster_text(text, "again.yaml");
    EXPECT_EQ(again.text, text);
    again.text = cluster.text;
    EXPECT_EQ(again, cluster);
  }
  const Cluster many = read_cluster("dgx-a100x8");  // its text is complete: 8 nodes
  EXPECT_EQ(read_cluster_text(many.text, "again.yaml"), many);
}

TEST(ClusterTest, UnknownPresetsAreNamedWithWhatIsMeant) {
  EXPECT_EQ(
      error_of([] { read_cluster("dgx-a10x8"); }),
      "error: cluster: no preset 'dgx-a10x8'; did you mean 'dgx-a100x8'?\n"
      "    possible: ascend-910, ascend-910b, dgx-a100, dgx-b200, dgx-h100, dgx-h200, gb200-nvl72, mi300x, tpu-v5e, "
      "tpu-v5p, tpu-v6e, each with xN for N nodes, or a file's path");
  for (const char* name : {"dgx-a100x0", "dgx-a100x", "dgx-a100x08", "x8", "", "8", "tpu"}) {
    EXPECT_NE(error_of([&] { read_cluster(name); }), "no error") << name;
  }
  EXPECT_EQ(error_of([] { read_cluster("dgx-a100x1000000"); }),
            "error: cluster 'dgx-a100x1000000' has more than 1048576 devices");
  EXPECT_NE(error_of([] { read_cluster("dgx-a100x99999999999999999999"); }), "no error");
  EXPECT_NE(error_of([] { read_cluster("no/such/file"); }), "no error");
}

// Part of a cluster has the measured times of all of it, and can be written and read.
TEST(ClusterTest, TablesOfMoreDevicesThanAreLeftStillCount) {
  Cluster cluster = read_cluster("dgx-a100");
  cluster.tables = {{CollectiveKind::kAllGather, "nvlink", 8, 0, {{1'000'000, 1'000'000'000}}}};
  const Cluster part = take_devices(cluster, 4);
  const Cluster again = read_cluster_text(part.text, "part.yaml");
  EXPECT_EQ(again.tables, part.tables);
  ASSERT_EQ(part.tables.size(), 1u);
  EXPECT_EQ(part.tables[0].level_count, 8);
  const HierarchicalCosts all(cluster, make_mesh(cluster)), left(again, make_mesh(again));
  EXPECT_EQ(left.time(CollectiveKind::kAllReduce, {{0, 1, 4}}, 1'000'000),
            all.time(CollectiveKind::kAllReduce, {{0, 2, 4}}, 1'000'000));
  EXPECT_GT(left.time(CollectiveKind::kAllReduce, {{0, 1, 4}}, 1'000'000), 500'000'000);
}

// Times on a ring say nothing of a line.
TEST(ClusterTest, TablesOfARingAreLeftOutOfALineWithANotice) {
  Cluster cluster = read_cluster("dgx-a100");
  cluster.levels[1].topology = Topology::kRing;
  cluster.tables = {{CollectiveKind::kAllGather, "nvlink", 8, 0, {{1'000'000, 1'000'000'000}}}};
  const Cluster part = take_devices(cluster, 4);
  EXPECT_TRUE(part.tables.empty());
  EXPECT_EQ(part.notices, std::vector<std::string>{"of 4 devices nvlink is no ring: its measured tables are left out"});
}

TEST(ClusterTest, TheFirstDevicesAreWholeGroupsOrPartOfOne) {
  const auto mesh = [](const char* name, std::int64_t devices) {
    return make_mesh(take_devices(read_cluster(name), devices)).to_string();
  };
  EXPECT_EQ(mesh("ascend-910", 8), "pcie=2, hccs=4");
  EXPECT_EQ(mesh("ascend-910", 4), "hccs=4");
  EXPECT_EQ(mesh("ascend-910", 3), "hccs=3");
  EXPECT_EQ(take_devices(read_cluster("ascend-910"), 1).num_devices(), 1);
  EXPECT_EQ(mesh("ascend-910x4", 16), "roce=2, pcie=2, hccs=4");
  EXPECT_EQ(take_devices(read_cluster("ascend-910x4"), 16).name, "ascend-910x2");
  EXPECT_EQ(take_devices(read_cluster("ascend-910x4"), 8).name, "ascend-910");
  EXPECT_EQ(take_devices(read_cluster("ascend-910x4"), 16), read_cluster("ascend-910x2"));
  EXPECT_EQ(error_of([&] { mesh("ascend-910", 6); }),
            "error: device_num is 6, which cuts through a group of 4 devices (level hccs)\n"
            "    possible: 4 or 8, or up to 4 devices of one innermost group");
  EXPECT_EQ(error_of([&] { mesh("ascend-910x2", 12); }),
            "error: device_num is 12, which cuts through a group of 8 devices (level pcie)\n"
            "    possible: 8 or 16, or up to 4 devices of one innermost group");
  EXPECT_EQ(error_of([&] { mesh("dgx-a100x8", 1024); }),
            "error: device_num is 1024, but dgx-a100x8 has 64 devices; use --cluster dgx-a100x128");
  EXPECT_EQ(error_of([&] { mesh("dgx-a100", 0); }), "error: device_num is 0; expected at least 1");
  EXPECT_EQ(error_of([&] { mesh("dgx-a100", INT64_MAX); }),
            "error: device_num is 9223372036854775807; expected at most 1048576");
}

TEST(ClusterTest, SourcesSayHowFarANumberCanBeTrusted) {
  const auto words = [](const Cluster& cluster) {
    std::string text;
    for (const auto& [key, provenance] : cluster.provenance())
      text += fmt::format("{} {}; ", key, to_string(provenance));
    return text;
  };
  EXPECT_EQ(words(read_cluster("dgx-a100x8")).substr(0, 90),
            "device datasheet; nvlink measured; ib measured; latency measured elsewhere; collectives me");
  Cluster cluster = read_cluster("dgx-a100");
  cluster.sources = {{"device.flops", "I read it"}, {"ib.latency", "datasheet, to be verified"}};
  EXPECT_EQ(words(cluster), "device.flops no source given; ib.latency to be verified; nvlink no source given; ");
}

}  // namespace
}  // namespace shardplan
