#include "costmodel/send_costs.h"

#include <gtest/gtest.h>

#include "costmodel/cluster/cluster.h"

namespace shardplan {
namespace {

/// Two nodes of four devices: 10 us and 1 GB/s between nodes (shared by a node or not), 1 us and 10 GB/s within.
Cluster two_nodes(LinkPer link_per) {
  Cluster cluster;
  cluster.levels = {{"node", 2, 10'000'000, 1'000'000'000, 1'000'000, link_per, 1'000'000, {}},
                    {"link", 4, 1'000'000, 10'000'000'000, 1'000'000, LinkPer::kDevice, 1'000'000, {}}};
  return cluster;
}

struct SendsCase {
  const char* name;
  LinkPer link_per;
  std::vector<DeviceSend> sends;
  Picoseconds time;
};
const SendsCase kSends[] = {
    {"nothing", LinkPer::kDevice, {}, 0},
    {"to_itself", LinkPer::kDevice, {{3, 3, 1000}}, 0},
    {"within_a_node", LinkPer::kDevice, {{0, 1, 1000}}, 1'000'000 + 100'000},
    {"between_nodes", LinkPer::kDevice, {{0, 4, 1000}}, 10'000'000 + 1'000'000},
    {"both_at_once", LinkPer::kDevice, {{0, 4, 1000}, {1, 2, 1000}}, 11'000'000},
    {"two_of_one_device", LinkPer::kDevice, {{0, 4, 1000}, {0, 5, 1000}}, 2 * 11'000'000},
    {"two_devices_side_by_side", LinkPer::kDevice, {{0, 4, 1000}, {1, 5, 1000}}, 11'000'000},
    {"two_devices_on_one_link", LinkPer::kGroup, {{0, 4, 1000}, {1, 5, 1000}}, 10'000'000 + 2'000'000},
    {"two_into_one_device", LinkPer::kDevice, {{0, 4, 1000}, {1, 4, 1000}}, 2 * 11'000'000},
    {"there_and_back", LinkPer::kDevice, {{0, 4, 1000}, {4, 0, 1000}}, 11'000'000},
};
TEST(SendCostsTest, TheBusiestLinkCounts) {
  for (const SendsCase& c : kSends) EXPECT_EQ(sends_time(two_nodes(c.link_per), c.sends), c.time) << c.name;
}

TEST(SendCostsTest, SendsThatBeginTogetherAreLaunchedOnce) {
  Cluster cluster = two_nodes(LinkPer::kDevice);
  cluster.collectives.launch = 7'000'000;
  for (const SendsCase& c : kSends) {
    if (c.link_per != LinkPer::kDevice) continue;
    EXPECT_EQ(sends_time(cluster, c.sends), c.time == 0 ? 0 : c.time + 7'000'000) << c.name;
  }
}

}  // namespace
}  // namespace shardplan
