#include "costmodel/cluster/cluster_base.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "costmodel/cluster/cluster.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

const std::string kHead = "shardplan: 1\ncluster: mine\n";

TEST(ClusterBaseTest, AFileWithoutDifferencesIsItsBase) {
  Cluster mine = read_cluster_text(kHead + "base: dgx-a100x4\n", "mine.yaml");
  const Cluster base = read_cluster("dgx-a100x4");
  EXPECT_EQ(mine.name, "mine");
  mine.name = base.name;
  mine.text = base.text;
  EXPECT_TRUE(mine == base);
}

TEST(ClusterBaseTest, DifferencesAreJoinedKeyByKeyAndLevelsByName) {
  const Cluster mine = read_cluster_text(kHead + R"(base: dgx-h100
fusion: library
device: {name: H100 of 96 GB, memory: {capacity: 96 GiB}, efficiency: {convolution: 0.25}}
levels: [{name: ib, count: 16, bandwidth: 200 Gb/s}]
sources: {ib.bandwidth: measured by us}
)",
                                         "mine.yaml");
  Cluster expected = read_cluster("dgx-h100");
  expected.name = "mine";
  expected.fusion = Fusion::kLibrary;
  expected.device.name = "H100 of 96 GB";
  expected.device.capacity = Bytes{96} << 30;
  expected.device.convolution_efficiency_ppm = 250'000;
  expected.levels[0].count = 16;
  expected.levels[0].bandwidth = 25'000'000'000;
  expected.sources = mine.sources;
  expected.text = mine.text;
  EXPECT_TRUE(mine == expected) << mine.text;
  // The numbers that were changed no longer have the base's sources.
  const auto source_of = [&](const std::string& key) {
    for (const auto& [name, words] : mine.sources) {
      if (name == key) return words;
    }
    return std::string("none");
  };
  EXPECT_EQ(source_of("efficiency.convolution"), "assumed");
  EXPECT_EQ(source_of("memory.capacity"), "assumed");
  EXPECT_EQ(source_of("ib.bandwidth"), "measured by us");
  EXPECT_EQ(source_of("name"), "none");
  EXPECT_NE(source_of("efficiency.matmul"), "assumed");
  // plan.json has the whole cluster, whatever becomes of the base.
  EXPECT_EQ(mine.text.find("base:"), std::string::npos);
  Cluster again = read_cluster_text(mine.text, "again.yaml");
  EXPECT_TRUE(again == mine);
}

TEST(ClusterBaseTest, FaultsAreInTheFileThatMakesThem) {
  EXPECT_EQ(error_of([&] {
              read_cluster_text(kHead + R"(base: dgx-h100x2
device:
  efficiency: {convolutoin: 0.3}
  memory: {capacity: 2 GiB}
levels:
  - {name: infiniband, bandwidth: 200 Gb/s}
  - {name: nvlink, count: 0}
ranks: [0, 1, 2]
)",
                                "mine.yaml");
            }),
            R"(mine.yaml:5:16: error: device.efficiency: unknown key 'convolutoin'; did you mean 'convolution'?
mine.yaml:6:11: error: device.memory: 4 GiB reserved of 2 GiB leave nothing
mine.yaml:8:12: error: levels: the base dgx-h100x2 has no level 'infiniband'
    its levels: ib, nvlink; a file without a base lists all of its own
mine.yaml:9:27: error: nvlink.count: '0' is not a whole number from 1 to 1048576
mine.yaml:10:8: error: ranks: expected a list of 2 positions, one for each device; found 3)");
  EXPECT_EQ(error_of([&] {
              read_cluster_text(kHead + "base: dgx-h100\nlevels: [{name: ib, count: 2}, {name: ib, count: 4}]\n",
                                "m.yaml");
            }),
            "m.yaml:4:39: error: levels: name 'ib' is given twice");
  EXPECT_EQ(error_of([&] { read_cluster_text(kHead + "base: dgx-h100\nlevels: []\n", "m.yaml"); }),
            "m.yaml:4:9: error: levels: expected a list of levels, outermost first; found a list");
  EXPECT_EQ(
      error_of([&] { read_cluster_text(kHead + "base: dgx-h100\nlevels: [2, {name: ib, count: 2}]\n", "m.yaml"); }),
      "m.yaml:4:10: error: levels[2]: expected a map, found '2'");
  EXPECT_NE(error_of([&] {
              read_cluster_text(kHead + "base: dgx-h101\n", "mine.yaml");
            }).find("mine.yaml:3:7: error: base: cluster: no preset 'dgx-h101'; did you mean 'dgx-h100'?"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              read_cluster_text(kHead + "base: [dgx-h100]\n", "mine.yaml");
            }).find("mine.yaml:3:7: error: base: expected a text, found a list"),
            std::string::npos);
}

TEST(ClusterBaseTest, ABaseMayBeAFileBesideItButNotItself) {
  const std::string folder = testing::TempDir() + "cluster_base";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/first.yaml") << kHead + "base: dgx-h100x2\nfusion: none\n";
  std::ofstream(folder + "/second.yaml") << kHead + "base: first.yaml\ntf32: all\n";
  std::ofstream(folder + "/circle.yaml") << kHead + "base: circle.yaml\n";
  std::ofstream(folder + "/wrong.yaml") << kHead + "base: dgx-h100\nfusion: some\n";
  const Cluster second = read_cluster(folder + "/second.yaml");
  EXPECT_EQ(second.num_devices(), 16);
  EXPECT_EQ(second.fusion, Fusion::kNone);
  EXPECT_EQ(second.tf32, Tf32::kAll);
  EXPECT_EQ(error_of([&] { read_cluster(folder + "/circle.yaml"); }),
            folder + "/circle.yaml:3:7: error: base: the file is its own base; expected a preset or another file");
  std::ofstream(folder + "/there.yaml") << kHead + "base: back.yaml\n";
  std::ofstream(folder + "/back.yaml") << kHead + "base: there.yaml\n";
  EXPECT_NE(error_of([&] {
              read_cluster(folder + "/there.yaml");
            }).find("base: more than 16 files, each the base of another"),
            std::string::npos);
  // What is wrong with a base stands in its own file.
  std::ofstream(folder + "/third.yaml") << kHead + "base: wrong.yaml\n";
  EXPECT_NE(error_of([&] {
              read_cluster(folder + "/third.yaml");
            }).find(folder + "/wrong.yaml:4:9: error: fusion: 'some'; expected none"),
            std::string::npos);
}

}  // namespace
}  // namespace shardplan
