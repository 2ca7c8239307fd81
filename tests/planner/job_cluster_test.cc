#include "planner/job_cluster.h"

#include <gtest/gtest.h>

#include "model/read_model.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

Model model_with(const std::string& options, const std::string& cluster = "") {
  return read_model_text("shardplan: 1\ninputs: {x: [64, 64]}\noperators: {a: {op: ReLU, in: x}}\n" +
                             (cluster.empty() ? "" : "cluster: " + cluster + "\n") + "parallel: {" + options + "}\n",
                         "m.yaml");
}
JobCluster job(const std::string& options, const AskedDevices& asked = {}, const std::string& cluster = "") {
  return job_cluster(model_with(options, cluster), asked);
}
std::string fault(const std::string& options, const AskedDevices& asked = {}, const std::string& cluster = "") {
  return error_of([&] { job(options, asked, cluster); });
}

TEST(JobClusterTest, TheCommandLineBeatsTheModel) {
  EXPECT_EQ(job("", {}, "dgx-a100").cluster.name, "dgx-a100");
  AskedDevices asked;
  asked.cluster = "dgx-h100";
  EXPECT_EQ(job("", asked, "dgx-a100").cluster.name, "dgx-h100");
  EXPECT_EQ(job("device_num: 4").cluster.num_devices(), 4);
  asked = {};
  asked.device_num = 2;
  EXPECT_EQ(job("device_num: 4", asked).cluster.num_devices(), 2);
}

TEST(JobClusterTest, AFileThatIsMissingIsSaidWhereTheModelNamesIt) {
  EXPECT_EQ(fault("", {}, "nowhere.yaml"),
            "m.yaml:4:10: error: nowhere.yaml: cannot be read: No such file or directory");
  AskedDevices asked;
  asked.cluster = "nowhere.yaml";
  EXPECT_EQ(fault("", asked), "nowhere.yaml: error: cannot be read: No such file or directory");
}

struct CountCase {
  const char* cluster;
  std::int64_t devices;
  const char* fault;  // without its place
};
const CountCase kCounts[] = {
    {"ascend-910", 1, ""},
    {"ascend-910", 2, ""},
    {"ascend-910", 4, ""},
    {"ascend-910", 8, ""},
    {"ascend-910x4", 16, ""},
    {"ascend-910", 3,
     "device_num is 3; HCCL takes 1, 2, 4 or 8 devices of one server, or all 8 of each\n    nearest: 2 or 4"},
    {"ascend-910", 6,
     "device_num is 6; HCCL takes 1, 2, 4 or 8 devices of one server, or all 8 of each\n    nearest: 4 or 8"},
    {"ascend-910x4", 12,
     "device_num is 12; HCCL takes 1, 2, 4 or 8 devices of one server, or all 8 of each\n    nearest: 8 or 16"},
    {"dgx-a100", 3, ""},  // NCCL takes any
    {"ascend-910", 0, "device_num is 0; expected at least 1"},
};
TEST(JobClusterTest, TakesAsManyDevicesAsTheSoftwareDoes) {
  for (const CountCase& c : kCounts) {
    const Cluster cluster = read_cluster(c.cluster);
    const std::string expected = *c.fault == '\0' ? "no error" : std::string("error: ") + c.fault;
    EXPECT_EQ(error_of([&] { EXPECT_EQ(job_devices(cluster, c.devices).num_devices(), c.devices); }), expected)
        << c.cluster;
  }
  EXPECT_EQ(fault("device_num: 6"),
            "m.yaml:4:24: error: device_num is 6; HCCL takes 1, 2, 4 or 8 devices of one server, or all 8 of each\n"
            "    nearest: 4 or 8");
}

TEST(JobClusterTest, StandAloneIsOneDevice) {
  const JobCluster alone = job("parallel_mode: stand_alone, device_num: 8");
  EXPECT_EQ(alone.cluster.num_devices(), 1);
  EXPECT_EQ(alone.notices, std::vector<std::string>{"device_num is not used: parallel_mode stand_alone is one device"});
  EXPECT_TRUE(job("parallel_mode: stand_alone").notices.empty());
  EXPECT_EQ(job("parallel_mode: stand_alone").cluster.num_devices(), 1);
}

TEST(JobClusterTest, ADeviceMustBeThatOfTheCluster) {
  EXPECT_EQ(job("device: GPU", {}, "dgx-a100").cluster.name, "dgx-a100");
  EXPECT_TRUE(job("device: Ascend").notices.empty());
  EXPECT_EQ(job("device: CPU").notices, std::vector<std::string>{"device CPU: planned as if it were Ascend 910"});
  EXPECT_EQ(fault("device: GPU", {}, "ascend-910"),
            "m.yaml:5:20: error: device is GPU, but the devices of ascend-910 are Ascend 910");
  AskedDevices asked;
  asked.cluster = "dgx-a100";
  EXPECT_NE(fault("device: Ascend", asked).find("device is Ascend, but the devices of dgx-a100 are "),
            std::string::npos);
}

TEST(JobClusterTest, AnUnknownClusterIsAnErrorWhereItIsNamed) {
  EXPECT_EQ(fault("", {}, "dgx-a10").substr(0, 17), "m.yaml:4:10: erro");
  AskedDevices asked;
  asked.cluster = "dgx-a10";
  EXPECT_EQ(fault("", asked).substr(0, 7), "error: ");
}

}  // namespace
}  // namespace shardplan
