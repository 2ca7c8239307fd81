#include "costmodel/cluster/cluster.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/cluster/quantity.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(Quantity, ReadsUnitsExactly) {
  EXPECT_EQ(parse_time("5 us"), 5'000'000);
  EXPECT_EQ(parse_time("0.001ns"), 1);
  EXPECT_EQ(parse_time("2.5 s"), 2'500'000'000'000);
  EXPECT_EQ(parse_time("1 ms"), 1'000'000'000);
  EXPECT_EQ(parse_bytes("32 GiB"), std::int64_t{32} << 30);
  EXPECT_EQ(parse_bytes("16GiB"), std::int64_t{16} << 30);
  EXPECT_EQ(parse_bytes("1.5 KB"), 1500);
  EXPECT_EQ(parse_bytes("0.5 TiB"), std::int64_t{1} << 39);
  EXPECT_EQ(parse_bytes("0 B"), 0);
  EXPECT_EQ(parse_bytes("1.95 GiB"), 2'093'796'556);
  EXPECT_EQ(parse_byte_rate("1.2 TB/s"), 1'200'000'000'000);
  EXPECT_EQ(parse_byte_rate("100 Gb/s"), 12'500'000'000);
  EXPECT_EQ(parse_byte_rate("8 b/s"), 1);
  EXPECT_EQ(parse_operation_rate("19.5 TFLOP/s"), 19'500'000'000'000);
  EXPECT_EQ(parse_operation_rate("2 PFLOP/s"), 2'000'000'000'000'000);
  EXPECT_EQ(parse_share("0.775"), 775'000);
  EXPECT_EQ(parse_share("1"), 1'000'000);
}

TEST(Quantity, RefusesWhatIsNotExactOrHasNoUnit) {
  EXPECT_EQ(error_of([] { parse_bytes("32"); }),
            "error: '32' has no unit; expected B, KB, MB, GB, TB, KiB, MiB, GiB or TiB, as in 32 GiB");
  EXPECT_EQ(error_of([] { parse_time("5 min"); }),
            "error: '5 min' has the unknown unit 'min'; expected ns, us, ms or s");
  EXPECT_EQ(error_of([] { parse_time("0.0001 ns"); }), "error: '0.0001 ns' is not a whole number of picoseconds");
  EXPECT_EQ(error_of([] { parse_byte_rate("4 b/s"); }), "error: '4 b/s' is not a whole number of bytes per second");
  EXPECT_EQ(error_of([] { parse_bytes("9000000000 GiB"); }), "error: '9000000000 GiB' is too large");
  for (const char* text :
       {"", "GiB", "-1 B", "1e3 B", ".5 B", "5. B", "1.2.3 B", "99999999999999999999 B", " 1 B", "1,5 B"}) {
    EXPECT_NE(error_of([&] { parse_bytes(text); }), "no error") << text;
  }
  EXPECT_EQ(error_of([] { parse_bytes("1.5 B"); }), "error: '1.5 B' is not a whole number of bytes");
  for (const char* text : {"0", "1.1", "-0.5", "50 %", "0.1234567", "", "x"}) {
    EXPECT_NE(error_of([&] { parse_share(text); }), "no error") << text;
  }
}

TEST(Quantity, WritesWhatReadsBack) {
  EXPECT_EQ(write_bytes(std::int64_t{32} << 30), "32 GiB");
  EXPECT_EQ(write_byte_rate(12'500'000'000), "12.5 GB/s");
  EXPECT_EQ(write_time(5'000'000), "5 us");
  EXPECT_EQ(write_share(775'000), "0.775");
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const auto value = static_cast<std::int64_t>(random.next() >> (2 + random.below(62)));
    EXPECT_EQ(parse_time(write_time(value)), value);
    EXPECT_EQ(parse_bytes(write_bytes(value)), value);
    EXPECT_EQ(parse_byte_rate(write_byte_rate(value)), value);
    const auto share = static_cast<std::int64_t>(1 + random.below(1'000'000));
    EXPECT_EQ(parse_share(write_share(share)), share);
  }
}

TEST(Cluster, PresetsAreThoseOfTheConfigurations) {
  const Cluster ascend = read_cluster("ascend-910");
  EXPECT_EQ(ascend.num_devices(), 8);
  EXPECT_EQ(ascend.usable_bytes(), std::int64_t{30} << 30);
  EXPECT_EQ(ascend.device.flops.count(DataType::kBF16), 0u);
  EXPECT_EQ(make_mesh(ascend).to_string(), "pcie=2, hccs=4");
  EXPECT_EQ(make_mesh(read_cluster("ascend-910x2")).to_string(), "roce=2, pcie=2, hccs=4");
  EXPECT_EQ(make_mesh(read_cluster("dgx-a100x8")).to_string(), "ib=8, nvlink=8");
  EXPECT_EQ(read_cluster("dgx-h100x128").num_devices(), 1024);
  EXPECT_EQ(read_cluster("dgx-a100x8").name, "dgx-a100x8");
  for (const auto& [name, text] : cluster_presets()) {
    EXPECT_EQ(read_cluster("configs/clusters/" + name + ".yaml"), read_cluster(name));
  }
}

TEST(Cluster, WhatIsWrittenReadsBack) {
  for (const char* name : {"ascend-910", "ascend-910x2", "dgx-a100", "dgx-h100x7"}) {
    Cluster cluster = read_cluster(name);
    cluster.levels[0].contention_ppm = 500'000;
    cluster.levels[1].protocols = {{1'100'000, 250'000}, {2'500'000, 950'000}};
    cluster.levels[0].together = {900'000, 1'000'000};
    cluster.collectives = {.launch = 7'000'000, .per_device = 20'000'000, .has_rings_and_trees = true};
    cluster.fusion = Fusion::kHandWritten;
    cluster.device.tf32_flops = 156'000'000'000'000;
    cluster.tf32 = Tf32::kConvolutions;
    cluster.tables.push_back(
        {CollectiveKind::kCollectivePermute, cluster.levels[1].name, 2, {{1, 5}, {1024, 7'000'001}}});
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

TEST(Cluster, UnknownPresetsAreNamedWithWhatIsMeant) {
  EXPECT_EQ(error_of([] { read_cluster("dgx-a10x8"); }),
            "error: cluster: no preset 'dgx-a10x8'; did you mean 'dgx-a100x8'?\n"
            "    possible: ascend-910, dgx-a100, dgx-h100, each with xN for N nodes, or a file's path");
  for (const char* name : {"dgx-a100x0", "dgx-a100x", "dgx-a100x08", "x8", "", "8", "tpu"}) {
    EXPECT_NE(error_of([&] { read_cluster(name); }), "no error") << name;
  }
  EXPECT_EQ(error_of([] { read_cluster("dgx-a100x1000000"); }),
            "error: cluster 'dgx-a100x1000000' has more than 1048576 devices");
  EXPECT_NE(error_of([] { read_cluster("dgx-a100x99999999999999999999"); }), "no error");
  EXPECT_NE(error_of([] { read_cluster("no/such/file"); }), "no error");
}

TEST(Cluster, TheFirstDevicesAreWholeGroupsOrPartOfOne) {
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

TEST(Cluster, MeshesOfTheUserMultiplyToTheDevicesAndSayWhatTheySpan) {
  const Cluster ascend = read_cluster("ascend-910");
  const DeviceMesh mesh = make_mesh(ascend, {{"dp", 2}, {"mp", 4}});
  EXPECT_EQ(spanned_levels(ascend, mesh, mesh.whole(0)), (std::vector<std::string>{"pcie"}));
  EXPECT_EQ(spanned_levels(ascend, mesh, mesh.whole(1)), (std::vector<std::string>{"hccs"}));
  const DeviceMesh other = make_mesh(ascend, {{"dp", 4}, {"mp", 2}});
  EXPECT_EQ(spanned_levels(ascend, other, other.whole(0)), (std::vector<std::string>{"pcie", "hccs"}));
  EXPECT_EQ(spanned_levels(ascend, other, {0, 1, 2}), (std::vector<std::string>{"pcie"}));
  EXPECT_EQ(error_of([&] {
              make_mesh(ascend, {{"dp", 3}, {"mp", 2}});
            }),
            "error: mesh dp=3, mp=2 has 6 devices, but ascend-910 has 8");
}

TEST(Cluster, SearchesCutTheInnerLevelsFirst) {
  const auto pieces = [](const DeviceMesh& mesh, std::size_t most) {
    return mesh.to_string(search_pieces(mesh, most));
  };
  EXPECT_EQ(pieces(DeviceMesh::parse("nvlink=8"), 3), "{nvlink:(1)2, nvlink:(2)2, nvlink:(4)2}");
  EXPECT_EQ(pieces(DeviceMesh::parse("ib=8, nvlink=8"), 3), "{ib, nvlink:(1)2, nvlink:(2)4}");
  EXPECT_EQ(pieces(DeviceMesh::parse("pcie=2, hccs=4"), 3), "{pcie, hccs:(1)2, hccs:(2)2}");
  EXPECT_EQ(pieces(DeviceMesh::parse("roce=2, pcie=2, hccs=4"), 3), "{roce, pcie, hccs}");
  EXPECT_EQ(pieces(DeviceMesh::parse("a=2, b=2, c=2, d=4"), 3), "{a, b, c, d}");
  EXPECT_EQ(pieces(DeviceMesh::parse("a=4, b=3"), 3), "{a:(1)2, a:(2)2, b}");
  EXPECT_EQ(pieces(DeviceMesh::parse("a=12"), 2), "{a:(1)2, a:(2)6}");
  EXPECT_EQ(pieces(DeviceMesh::parse("a=7"), 3), "{a}");
  EXPECT_EQ(pieces(DeviceMesh(), 3), "{}");
}

TEST(Cluster, ProductsInTf32NeedTheirRate) {
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

TEST(Cluster, AllFaultsOfAFileAreShownAtOnce) {
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

TEST(Cluster, TablesThatFallAreMadeMonotoneWithANotice) {
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

TEST(Cluster, SourcesSayHowFarANumberCanBeTrusted) {
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
  EXPECT_EQ(words(cluster), "device.flops source not said; ib.latency to be verified; nvlink source not said; ");
}

/// Random damage to a good file: an answer or an InputError with places inside the file, never anything else.
TEST(Cluster, DamagedFilesGiveErrorsWithPlaces) {
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
