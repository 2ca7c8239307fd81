#include "costmodel/cluster/rank_table.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/roofline_costs.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

std::string read_error(const std::string& text) {
  return error_of([&] { read_rank_table_text(text, "rank_table.json"); });
}

/// The line of one device; the file in the documents has ten blanks before each.
std::string device(const std::string& card, const std::string& address, const std::string& rank) {
  return "          {\"device_id\": \"" + card + "\",\"device_ip\": \"" + address + "\",\"rank_id\": \"" + rank + "\"}";
}

std::string server(const std::string& id, const std::vector<std::string>& devices) {
  std::string text = "    {\n      \"server_id\": \"" + id + "\",\n        \"device\": [\n";
  for (std::size_t i = 0; i < devices.size(); ++i) text += devices[i] + (i + 1 < devices.size() ? ",\n" : "\n");
  return text + "        ],\n      \"host_nic_ip\": \"reserve\"}";
}

std::string table(const std::vector<std::string>& servers, const std::string& count,
                  const std::string& status = "completed") {
  std::string text = "{\n  \"version\": \"1.0\",\n  \"server_count\": \"" + count + "\",\n  \"server_list\": [\n";
  for (std::size_t i = 0; i < servers.size(); ++i) text += servers[i] + (i + 1 < servers.size() ? ",\n" : "\n");
  return text + "  ],\n  \"status\": \"" + status + "\"\n}\n";
}

/// Cards in this order with ranks from `first` on, with addresses of network `net`.
std::vector<std::string> cards(const std::vector<int>& order, int first = 0, int net = 27) {
  std::vector<std::string> lines;
  for (const int card : order) {
    lines.push_back(device(std::to_string(card), fmt::format("192.{}.{}.6", card + 1, net), std::to_string(first++)));
  }
  return lines;
}

const std::vector<int> kAllCards = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(RankTable, OneServerIsThePreset) {
  const RankTable read = read_rank_table_text(table({server("10.155.111.140", cards(kAllCards))}, "1"), "r.json");
  ASSERT_EQ(read.servers.size(), 1u);
  EXPECT_EQ(read.servers[0].devices[3], (RankTable::Device{3, "192.4.27.6", 3}));
  const Cluster preset = read_cluster("ascend-910");
  Cluster cluster = with_rank_table(preset, read);
  cluster.text = preset.text;
  EXPECT_EQ(cluster, preset);
}

TEST(RankTable, SeveralServersFollowTheTextOfTheirIds) {
  const std::string text =
      table({server("10.155.111.141", cards(kAllCards, 8, 28)), server("10.155.111.140", cards(kAllCards, 0))}, "2");
  const Cluster cluster = with_rank_table(read_cluster("ascend-910"), read_rank_table_text(text, "r.json"));
  EXPECT_EQ(cluster, read_cluster("ascend-910x2"));
  EXPECT_TRUE(cluster.notices.empty());
}

TEST(RankTable, FewCardsLieInOneRing) {
  const auto mesh = [](const std::vector<int>& order) {
    const std::string text = table({server("10.0.0.1", cards(order))}, "1");
    return make_mesh(with_rank_table(read_cluster("ascend-910"), read_rank_table_text(text, "r.json"))).to_string();
  };
  EXPECT_EQ(mesh({4, 5, 6, 7}), "hccs=4");
  EXPECT_EQ(mesh({2, 1}), "hccs=2");
  EXPECT_EQ(mesh({5}), "");
}

TEST(RankTable, CardsOutOfOrderAreCostedWhereTheyStand) {
  const std::string text = table({server("10.0.0.1", cards({0, 1, 4, 5, 2, 3, 6, 7}))}, "1");
  const Cluster cluster = with_rank_table(read_cluster("ascend-910"), read_rank_table_text(text, "r.json"));
  EXPECT_EQ(cluster.position_of_rank, (std::vector<std::int64_t>{0, 1, 4, 5, 2, 3, 6, 7}));
  const DeviceMesh mesh = make_mesh(cluster);
  EXPECT_EQ(spanned_levels(cluster, mesh, mesh.whole(1)), (std::vector<std::string>{"pcie", "hccs"}));
  const Cluster straight = read_cluster("ascend-910");
  const std::vector<AxisRef> hccs = {mesh.whole(1)};
  EXPECT_GT(RooflineCosts(cluster, mesh).collectives()->time(CollectiveKind::kAllGather, hccs, 1 << 20),
            2 * RooflineCosts(straight, mesh).collectives()->time(CollectiveKind::kAllGather, hccs, 1 << 20));
  EXPECT_EQ(error_of([&] { take_devices(cluster, 4); }),
            "error: device_num is 4, but the first 4 ranks (rank table, or the key ranks) do not stand on the first 4 "
            "cards");
}

TEST(RankTable, EveryRuleHasItsMessage) {
  const std::string good = table({server("10.155.111.140", cards(kAllCards))}, "1");
  std::string text = good;
  text.replace(text.find("\"rank_id\": \"0\""), 14, "\"rank_id\": 0");
  EXPECT_EQ(read_error(text),
            "rank_table.json:8:66: error: \"rank_id\" is the number 0; rank tables hold strings: \"0\"");
  text = good;
  text.replace(text.find("\"rank_id\": \"0\""), 9, "\"rankid\"");
  EXPECT_EQ(read_error(text),
            "rank_table.json:8:11: error: \"rank_id\" is missing\n"
            "rank_table.json:8:55: error: unknown key \"rankid\"; did you mean \"rank_id\"?");
  EXPECT_EQ(
      read_error(table({server("10.155.111.140", cards(kAllCards))}, "1", "initializing")),
      "rank_table.json:19:13: error: status is \"initializing\"; the table is not finished (expected \"completed\")");
  EXPECT_EQ(read_error(table({server("10.155.111.140", cards(kAllCards))}, "2")),
            "rank_table.json:3:19: error: server_count is \"2\" but server_list holds 1 server");
  EXPECT_EQ(read_error(table({server("10.155.111.140", cards({0, 1, 2, 3, 4, 5}))}, "1")),
            "rank_table.json:7:19: error: 6 devices on one server; HCCL takes 1, 2, 4 or 8");
  EXPECT_EQ(
      read_error(table(
          {server("10.155.111.140", cards(kAllCards)), server("10.155.111.141", cards({0, 1, 2, 3}, 8, 28))}, "2")),
      "rank_table.json:20:19: error: server 10.155.111.141 has 4 devices; with several servers each needs 8");
  EXPECT_EQ(read_error(table({server("10.155.111.140", cards({2, 3, 4, 5}))}, "1")),
            "rank_table.json:8:25: error: devices 2, 3, 4, 5 cross the rings 0-3 and 4-7; take four of one ring");
  std::vector<std::string> devices = cards(kAllCards);
  devices[4] = device("4", "192.5.27.6", "3");
  EXPECT_EQ(read_error(table({server("10.155.111.140", devices)}, "1")),
            "rank_table.json:12:66: error: rank_id \"3\" was given at 11:66");
  EXPECT_EQ(
      read_error(table(
          {server("10.155.111.140", cards(kAllCards, 8)), server("10.155.111.141", cards(kAllCards, 0, 28))}, "2")),
      "rank_table.json:21:66: error: rank_id \"0\" is on 10.155.111.141, after 10.155.111.140; ranks must follow the "
      "order of server_id");
  devices = cards(kAllCards);
  devices[5] = device("5", "192.4.27.6", "5");
  EXPECT_EQ(read_error(table({server("10.155.111.140", devices)}, "1")),
            "rank_table.json:13:42: error: device_ip 192.4.27.6 was given at 11:42");
  devices[5] = device("5", "192.6.27", "5");
  EXPECT_EQ(read_error(table({server("10.155.111.140", devices)}, "1")),
            "rank_table.json:13:42: error: device_ip \"192.6.27\" is not an IP address");
  devices[5] = device("5", "192.6.2\xff.6", "5");
  EXPECT_EQ(read_error(table({server("10.155.111.140", devices)}, "1")),
            "rank_table.json:13:50: error: not JSON: the byte 0xff is not part of a character in UTF-8");
  devices[5] = device("5", "fe80::1", "5");
  EXPECT_EQ(read_error(table({server("10.155.111.140", devices)}, "1")), "no error");
  devices[5] = device("4", "192.6.27.6", "9");
  devices[6] = device("8", "192.7.27.6", "x");
  EXPECT_EQ(read_error(table({server("10.155.111.140", devices)}, "1")),
            "rank_table.json:13:25: error: device_id 4 was given at 12:25\n"
            "rank_table.json:13:66: error: rank_id \"9\" is outside 0 to 7: there are 8 devices\n"
            "rank_table.json:14:25: error: device_id \"8\" is not a card of a server; expected 0 to 7\n"
            "rank_table.json:14:66: error: rank_id \"x\" is not a whole number");
  EXPECT_EQ(read_error(table({server("a", cards(kAllCards)), server("a", cards(kAllCards, 8, 28))}, "2")),
            "rank_table.json:19:20: error: server_id a was given at 6:20");
  EXPECT_EQ(read_error(table({server("a", cards(kAllCards)), server("a", cards(kAllCards))}, "2")),
            "rank_table.json:19:20: error: server_id a was given at 6:20");
  EXPECT_EQ(read_error("[]"),
            "rank_table.json:1:1: error: expected an object with version, server_count, server_list and status; found "
            "a list");
}

TEST(RankTable, ServersInTextOrderThatIsNotTheOrderOfNumbersGetANotice) {
  const std::string text =
      table({server("10.0.0.9", cards(kAllCards, 8)), server("10.0.0.10", cards(kAllCards, 0, 28))}, "2");
  EXPECT_EQ(read_rank_table_text(text, "r.json").notices,
            (std::vector<std::string>{
                "r.json: servers stand in the text order of server_id, 10.0.0.10 before 10.0.0.9; by their "
                "addresses it would be the other way round"}));
}

TEST(RankTable, WhatIsWrittenReadsBack) {
  for (const char* name : {"ascend-910", "ascend-910x2", "ascend-910x16", "dgx-a100x100", "dgx-h100x200"}) {
    const Cluster cluster = read_cluster(name);
    const RankTable read = read_rank_table_text(write_rank_table(cluster), "w.json");
    EXPECT_TRUE(read.notices.empty()) << name;
    const std::string preset = std::string(name).substr(0, std::string(name).find('x', 5));
    Cluster again = with_rank_table(read_cluster(preset), read);
    again.text = cluster.text;
    EXPECT_EQ(again, cluster);
  }
  const Cluster four = take_devices(read_cluster("ascend-910"), 4);
  EXPECT_EQ(with_rank_table(read_cluster("ascend-910"), read_rank_table_text(write_rank_table(four), "w.json")), four);
  EXPECT_NE(write_rank_table(read_cluster("ascend-910x2"))
                .find("{\"device_id\": \"2\", \"device_ip\": \"192.3.0.2\", \"rank_id\": \"10\"}"),
            std::string::npos);
  EXPECT_NE(error_of([] { write_rank_table(take_devices(read_cluster("ascend-910"), 3)); }), "no error");
}

TEST(RankTable, DamagedTablesGiveErrorsWithPlaces) {
  Random random(11);
  const std::string good = write_rank_table(read_cluster("ascend-910x2"));
  const std::vector<std::string> pieces = {"{",       "}",
                                           "[",       "]",
                                           ":",       ",",
                                           "\n",      "\"",
                                           "0",       "7",
                                           "\\",      "\\u",
                                           "\\ud800", "null",
                                           "true",    "-",
                                           "1e",      std::string(1, '\0'),
                                           "\xff",    "\"rank_id\": \"1\","};
  int num_read = 0;
  for (int round = 0; round < 700; ++round) {
    std::string text = good;
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const std::size_t at = random.below(text.size());
      text.replace(at, std::min<std::size_t>(random.below(4), text.size() - at), pieces[random.below(pieces.size())]);
    }
    try {
      with_rank_table(read_cluster("ascend-910"), read_rank_table_text(text, "f.json"));
      ++num_read;
    } catch (const InputError& error) {
      for (const Diagnostic& diagnostic : error.diagnostics())
        EXPECT_GE(diagnostic.place.line, 1) << diagnostic.message;
    }
  }
  EXPECT_GT(num_read, 5);
}

/// What a plan file stores about a cluster includes where its ranks are.
TEST(RankTable, AClusterFileKeepsTheOrderOfRanks) {
  const RankTable table = read_rank_table("configs/rank_table_8pcs.json");
  const Cluster cluster = with_rank_table(read_cluster("ascend-910"), table);
  EXPECT_EQ(cluster.position_of_rank, (std::vector<std::int64_t>{0, 1, 4, 5, 2, 3, 6, 7}));
  Cluster again = read_cluster_text(cluster.text, "cluster.yaml");
  EXPECT_EQ(again.position_of_rank, cluster.position_of_rank);
  EXPECT_NE(again.name, "ascend-910") << "whose ranks stand in order";
  const std::string text = read_cluster("ascend-910").text;
  const Cluster named = read_cluster_text(text + "rank_table: configs/rank_table_8pcs.json\n", "cluster.yaml");
  EXPECT_EQ(named.position_of_rank, cluster.position_of_rank);
  const Cluster beside = read_cluster_text(text + "rank_table: rank_table_8pcs.json\n", "configs/cluster.yaml");
  EXPECT_EQ(beside.position_of_rank, cluster.position_of_rank);
}

TEST(RankTable, RanksOfAClusterFileAreChecked) {
  const std::string text = read_cluster("ascend-910").text;
  const auto fault = [&](const std::string& lines) {
    return error_of([&] { read_cluster_text(text + lines, "cluster.yaml"); });
  };
  expect_has(fault("ranks: [0, 1, 2]\n"), "ranks: expected a list of 8 positions, one for each device; found 3");
  expect_has(fault("ranks: [0, 1, 2, 3, 4, 5, 6, 6]\n"), "ranks: two ranks stand at position 6");
  expect_has(fault("ranks: [0, 1, 2, 3, 4, 5, 6, 8]\n"), "ranks: position 8; expected 0 to 7");
  expect_has(fault("ranks: [0, 1, 2, 3, 4, 5, 6, x]\n"), "ranks: 'x' is not a whole number");
  const std::string missing = fault("rank_table: nowhere.json\n");
  expect_has(missing, "rank_table: nowhere.json cannot be read");
  EXPECT_TRUE(missing.starts_with("cluster.yaml:")) << missing;
  expect_has(fault("ranks: [1, 0, 2, 3, 4, 5, 6, 7]\nrank_table: configs/rank_table_8pcs.json\n"), "keep one of them");
}

}  // namespace
}  // namespace shardplan
