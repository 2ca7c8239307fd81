#include "planner/worker_groups.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

Model placed(const std::string& parallel) {
  return read_model_text(R"(shardplan: 1
model: net
inputs: {x: [64, 32]}
operators:
  a: {op: ReLU, in: x, place: {rank: 0}}
  b: {op: Tanh, in: a, place: {rank: 1}}
parallel: )" + parallel + "\n",
                         "m.yaml");
}

TEST(WorkerGroupsTest, DivideTheDevices) {
  const Cluster cluster = take_devices(read_cluster("dgx-a100x4"), 16);
  const WorkerGroups two = worker_groups(placed("{workers: 2}"), cluster);
  EXPECT_EQ(two.workers, 2);
  EXPECT_EQ(two.group.num_devices(), 8);
  const WorkerGroups each = worker_groups(placed("{}"), cluster);
  EXPECT_EQ(each.workers, 16) << "one worker for each device";
  EXPECT_EQ(each.group.num_devices(), 1);
  EXPECT_EQ(worker_groups(placed("{parallel_mode: stand_alone}"), cluster).workers, 1);
}

TEST(WorkerGroupsTest, RefuseWhatCannotBeDivided) {
  const Cluster cluster = take_devices(read_cluster("dgx-a100x4"), 16);
  const std::string uneven = error_of([&] { worker_groups(placed("{workers: 3}"), cluster); });
  EXPECT_NE(uneven.find("m.yaml:7:"), std::string::npos) << uneven;
  const std::string outside = error_of([&] { worker_groups(placed("{workers: 1}"), cluster); });
  EXPECT_NE(outside.find("m.yaml:6:"), std::string::npos) << outside;
}

/// Workers on one node send over its links, others over the network: the latter takes longer.
TEST(WorkerGroupsTest, SendsTakeTheLinkBetweenTheTwo) {
  const Cluster cluster = read_cluster("dgx-a100x4");
  const SendTime send = send_time_of(cluster, 4);
  EXPECT_GT(send(0, 2, Bytes{1} << 24), send(0, 1, Bytes{1} << 24));
}

}  // namespace
}  // namespace shardplan
