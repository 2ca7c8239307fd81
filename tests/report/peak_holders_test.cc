#include "report/metrics/peak_holders.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

TEST(PeakHoldersTest, ShareOutThePeak) {
  for (const Plan& plan : {tiny_plan(), block_plan()}) {
    Bytes sum = 0;
    std::set<std::string> names;
    const auto holders = peak_holders(plan);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      sum += holders[i].second;
      EXPECT_TRUE(names.insert(holders[i].first).second) << holders[i].first << " is listed once";
      if (i > 0) {
        EXPECT_GE(holders[i - 1].second, holders[i].second);
      }
    }
    EXPECT_GT(plan.memory.peak, 0);
    EXPECT_EQ(sum, plan.memory.peak);
  }
}

}  // namespace
}  // namespace shardplan
