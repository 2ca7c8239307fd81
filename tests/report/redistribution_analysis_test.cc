#include "report/layouts/redistribution_analysis.h"

#include <gtest/gtest.h>

#include "costmodel/cluster/cluster_mesh.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

RedistributionQuestion question(const char* from, const char* to, const Shape& shape = {16, 24}) {
  RedistributionQuestion asked;
  asked.cluster = read_cluster("ascend-910");
  asked.mesh = make_mesh(asked.cluster);  // pcie=2, hccs=4
  asked.shape = shape;
  asked.from = parse_layout(from, asked.mesh);
  asked.to = parse_layout(to, asked.mesh);
  return asked;
}

TEST(RedistributionAnalysisTest, ACheckExecutesThePlan) {
  const RedistributionReport report = answer(question("[{pcie}, {hccs}]", "[{hccs}, {pcie}]"), true);
  EXPECT_EQ(report.dtype, "f32");
  EXPECT_EQ(report.spans, "pcie=2 (pcie), hccs=4 (hccs)");
  EXPECT_FALSE(report.plan.steps.empty());
  ASSERT_TRUE(report.error);
  EXPECT_LE(*report.error, 1e-9);
  EXPECT_TRUE(report.is_verified());
  ASSERT_TRUE(report.greedy);
  EXPECT_GE(report.greedy->time, report.plan.time);
  EXPECT_FALSE(answer(question("[{pcie}, {}]", "[{}, {}]"), false).is_verified()) << "nothing was checked";
}

TEST(RedistributionAnalysisTest, UnevenLayoutsHaveNoGreedyPlan) {
  const RedistributionReport report = answer(question("[{hccs}, {}]", "[{}, {hccs}]", {10, 7}), true);
  EXPECT_FALSE(report.greedy);
  EXPECT_TRUE(report.is_verified());
}

// From eight devices to four others: partial sums are added up before they are sent, and every byte arrives once.
TEST(RedistributionAnalysisTest, OtherDevicesAreSentWholeValues) {
  RedistributionQuestion asked = question("[{pcie}, {}] unreduced={hccs}", "[{pcie}, {}]");
  asked.mesh = DeviceMesh({{"pcie", 2}, {"hccs", 2}}, {0, 1, 2, 3});
  asked.from = parse_layout("[{pcie}, {}] unreduced={hccs}", asked.mesh);
  asked.to_mesh = DeviceMesh({{"a", 4}}, {4, 5, 6, 7});
  asked.to = parse_layout("[{a}, {}]", *asked.to_mesh);
  const RedistributionReport report = answer(asked, true);
  ASSERT_TRUE(report.sends);
  EXPECT_TRUE(report.is_verified());
  EXPECT_EQ(report.plan.to, parse_layout("[{pcie}, {}]", asked.mesh));
  Bytes arrived = 0;
  for (const BoxSend& box : report.sends->boxes) {
    EXPECT_GE(box.to_device, 4);
    EXPECT_LT(box.from_device, 4);
    arrived += box.num_elements() * report.sends->cell_bytes;
  }
  EXPECT_EQ(arrived, asked.tensor_bytes());
  EXPECT_EQ(asked.tensor_bytes(), 16 * 24 * 4);
  EXPECT_EQ(report.time(), report.plan.time + report.sends->time);
}

TEST(RedistributionAnalysisTest, RefusesToExecuteWhatIsTooLarge) {
  const RedistributionQuestion asked = question("[{pcie}, {}]", "[{}, {}]", {1 << 14, 1 << 14});
  EXPECT_FALSE(answer(asked, false).plan.steps.empty());
  EXPECT_EQ(
      error_of([&] { answer(asked, true); }),
      "error: --check: the simulated devices would hold 2147483648 elements, at most 67108864 are possible; give a "
      "smaller --shape");
}

}  // namespace
}  // namespace shardplan
