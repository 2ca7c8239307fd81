// Cluster files (costmodel/cluster/read_cluster.cc): what is rejected, and the line reported.

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "costmodel/cluster/cluster.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(ReadClusterTest, ProductsInTf32NeedTheirRate) {
  const std::string text = read_cluster("dgx-a100").text;
  const std::size_t rate = text.find(", tf32: 156 TFLOP/s"), choice = text.find("tf32: none");
  ASSERT_NE(rate, std::string::npos);
  ASSERT_NE(choice, std::string::npos);
  std::string all = text;
  all.replace(choice, 10, "tf32: all");
  EXPECT_EQ(read_cluster_text(all, "c.yaml").tf32, Tf32::kAll);
  std::string other = text;
  other.replace(choice, 10, "tf32: high");
  EXPECT_NE(
      error_of([&] { read_cluster_text(other, "c.yaml"); }).find("tf32: 'high'; expected none, convolutions or all"),
      std::string::npos);
  all.erase(rate, 19);
  EXPECT_NE(error_of([&] {
              read_cluster_text(all, "c.yaml");
            }).find("tf32: device.flops has no rate tf32 at which the products would be computed"),
            std::string::npos);
}

TEST(ReadClusterTest, LinksOfARingArePerDevice) {
  const std::string text = R"(shardplan: 1
cluster: c
device: {name: D, memory: {capacity: 2 GiB, bandwidth: 1 TB/s}, flops: {f32: 1 TFLOP/s}}
levels:
  - {name: y, count: 4, latency: 1 us, bandwidth: 1 GB/s, topology: ring, link_per: group}
  - {name: x, count: 4, latency: 1 us, bandwidth: 1 GB/s, topology: torus}
)";
  EXPECT_EQ(
      error_of([&] { read_cluster_text(text, "c.yaml"); }),
      "c.yaml:5:85: error: y.link_per: group, but its topology is ring; links of rings, lines and full meshes are per "
      "device\nc.yaml:6:69: error: x.topology: 'torus'; expected switch, full_mesh, ring or line");
}

TEST(ReadClusterTest, AllFaultsOfAFileAreShownAtOnce) {
  const std::string text = R"(shardplan: 2
cluster: [x]
device:
  name: D
  memory: {capacity: 2 GiB, reserved: 2 GiB, bandwith: 1 TB/s}
  flops: {f61: 1 TFLOP/s, f32: 1 TB/s}
  efficiency: {matmul: 1.5}
  start: 5
levels:
  - {name: a b, count: 0, latency: 1 us, bandwidth: 1 GB/s}
  - {name: in, count: 4, latency: 1 us, bandwidth: 0 GB/s, link_per: card}
  - {name: in, count: 010, latency: -1 us, bandwidth: 10}
tables:
  - {collective: allreduce, level: on, devices: 4, bytes: [1 MB, 1 MB], time: [1 us, 2 us]}
  - {collective: all_reduce, level: in, devices: 1, bytes: [1 MB], time: []}
colour: red
)";
  EXPECT_EQ(error_of([&] { read_cluster_text(text, "c.yaml"); }),
            R"(c.yaml:1:12: error: shardplan: format version '2'; this program reads version 1
c.yaml:2:10: error: cluster: expected a text, found a list
c.yaml:5:11: error: device.memory.bandwidth: missing
c.yaml:5:11: error: device.memory: 2 GiB reserved of 2 GiB leave nothing
c.yaml:5:46: error: device.memory: unknown key 'bandwith'; did you mean 'bandwidth'?
c.yaml:6:11: error: device.flops: unknown dtype 'f61'; expected f64, f32, f16, bf16, f8e4m3, i64, i32, i8, u8, tf32
c.yaml:6:32: error: device.flops.f32: '1 TB/s' has the unknown unit 'TB/s'; expected GFLOP/s, TFLOP/s or PFLOP/s
c.yaml:7:24: error: device.efficiency.matmul: 1.5 is outside the range above 0 and at most 1
c.yaml:8:10: error: device.start: '5' has no unit; expected ns, us, ms or s, as in 5 us
c.yaml:10:12: error: levels: name 'a b'; expected letters, digits, '_' or '-'
c.yaml:10:24: error: a b.count: '0' is not a whole number from 1 to 1048576
c.yaml:11:52: error: in.bandwidth: '0 GB/s' is nothing; expected more
c.yaml:11:70: error: in.link_per: 'card'; expected device or group
c.yaml:12:12: error: levels: name 'in' is given twice
c.yaml:12:23: error: in.count: '010' is not a whole number from 1 to 1048576
c.yaml:12:37: error: in.latency: '-1 us' is not a number with a unit; expected a value such as 5 us
c.yaml:12:55: error: in.bandwidth: '10' has no unit; expected B/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s, b/s, Kb/s, Mb/s, Gb/s or Tb/s, as in 12.5 GB/s
c.yaml:14:18: error: tables[0].collective: 'allreduce'; expected all_gather, reduce_scatter, all_reduce, all_to_all or permute
c.yaml:14:36: error: tables[0].level: no level 'on'; did you mean 'in'?
c.yaml:14:66: error: tables[0].bytes: 1 MB does not exceed 1 MB before it
c.yaml:15:50: error: tables[1].devices: 1; expected at least 2
c.yaml:15:74: error: tables[1].time: expected a list of at least one value, found an empty list
c.yaml:16:1: error: unknown key 'colour')");
}

// A table of all 8 devices, in the file of a part of the cluster.
TEST(ReadClusterTest, TablesMayBeOfALevelWithMoreParts) {
  const auto read = [](int of) {
    return error_of([&] {
      const Cluster cluster = read_cluster_text(
          fmt::format(
              "shardplan: 1\ncluster: part\nbase: dgx-a100\nlevels: [{{name: nvlink, count: 4}}]\ntables:\n"
              "  - {{collective: all_reduce, level: nvlink, devices: 8, of: {}, bytes: [1 MB], time: [1 ms]}}\n",
              of),
          "p.yaml");
      EXPECT_EQ(cluster.tables.at(0).level_count, 8);
    });
  };
  EXPECT_EQ(read(8), "no error");
  EXPECT_EQ(read(2), "p.yaml:6:61: error: tables[0].of: 2; nvlink has 4 here, expected at least that");
  EXPECT_EQ(read(12),
            "p.yaml:6:54: error: tables[0].devices: 8; groups along nvlink have 12 devices or a divisor of that");
}

TEST(ReadClusterTest, ARankTableIsOneFault) {
  const std::string table =
      "{\"version\": \"1.0\", \"server_count\": \"1\", \"status\": \"completed\",\n \"server_list\": []}";
  try {
    read_cluster_text(table, "ranks.json");
    FAIL();
  } catch (const InputError& error) {
    ASSERT_EQ(error.diagnostics().size(), 1u);
    EXPECT_EQ(error.diagnostics()[0].place.line, 2);
    EXPECT_NE(error.diagnostics()[0].message.find("--rank-table ranks.json"), std::string::npos);
  }
}

TEST(ReadClusterTest, AModelIsOneFault) {
  EXPECT_EQ(
      error_of([] { read_cluster_text("shardplan: 1\nmodel: m\noperators:\n  a: {op: ReLU, in: x}\n", "m.yaml"); }),
      "m.yaml:3:1: error: this file describes a model, not a cluster; expected the keys device and levels");
}

TEST(ReadClusterTest, TablesThatFallAreMadeMonotoneWithANotice) {
  const std::string text =
      read_cluster("dgx-a100").text +
      "tables:\n  - {collective: all_reduce, level: nvlink, devices: 8, bytes: [1 MB, 64 MB, 1 GB], "
      "time: [28 us, 20 us, 5276 us]}\n";
  const Cluster cluster = read_cluster_text(text, "a.yaml");
  EXPECT_EQ(cluster.tables.front().points,
            (std::vector<std::pair<Bytes, Picoseconds>>{
                {1'000'000, 28'000'000}, {64'000'000, 28'000'000}, {1'000'000'000, 5'276'000'000}}));
  EXPECT_EQ(
      cluster.notices,
      (std::vector<std::string>{"a.yaml: tables[0]: 64 MB takes 20 us, less than 28 us before it; taken as 28 us"}));
}

/// Random damage to a valid file: a result or an InputError with a place inside the file, never anything else.
TEST(ReadClusterTest, DamagedFilesGiveErrorsWithPlaces) {
  Random random(7);
  const std::vector<std::string> pieces = {"{",    "}",
                                           "[",    "]",
                                           ":",    ",",
                                           "\n",   "  ",
                                           "- ",   "\"",
                                           "'",    "0",
                                           "x",    "99999999999999999999",
                                           "null", "~",
                                           "&a",   "*a",
                                           "!t",   "#",
                                           "\t",   std::string(1, '\0'),
                                           "\xff", "GiB",
                                           "-1",   "1e9"};
  int num_read = 0;
  for (int round = 0; round < 500; ++round) {
    const auto& presets = cluster_presets();
    std::string text = presets[random.below(presets.size())].second;
    for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      const std::size_t at = random.below(text.size());
      const std::size_t length = std::min<std::size_t>(random.below(6), text.size() - at);
      text.replace(at, length, random.below(3) == 0 ? "" : pieces[random.below(pieces.size())]);
    }
    try {
      const Cluster cluster = read_cluster_text(text, "f.yaml");
      EXPECT_GE(cluster.num_devices(), 1);
      make_mesh(cluster);
      ++num_read;
    } catch (const InputError& error) {
      ASSERT_FALSE(error.diagnostics().empty());
      for (const Diagnostic& diagnostic : error.diagnostics()) {
        EXPECT_EQ(diagnostic.place.file, "f.yaml");
        EXPECT_GE(diagnostic.place.line, 1) << diagnostic.message;
        EXPECT_FALSE(diagnostic.message.empty());
      }
    }
  }
  EXPECT_GT(num_read, 10);
}

}  // namespace
}  // namespace shardplan
