#include "solver/core/work_meter.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(WorkMeterTest, EndsAtItsLimit) {
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, 100);
  EXPECT_TRUE(meter.spend(99));
  EXPECT_EQ(meter.stopped_by(), std::nullopt);
  EXPECT_FALSE(meter.spend(1));
  EXPECT_TRUE(meter.is_spent());
  EXPECT_FALSE(meter.is_stopped());
  EXPECT_EQ(meter.stopped_by(), Limit::kWork);
}

TEST(WorkMeterTest, EndsAtTheDeadline) {
  std::stop_source stop;
  const Deadline deadline(0, stop.get_token());
  WorkMeter meter(deadline, UINT64_MAX);
  EXPECT_TRUE(meter.spend(10));
  stop.request_stop();
  EXPECT_TRUE(meter.spend(10));  // the clock is looked at once in a million units
  EXPECT_FALSE(meter.spend(1'000'000));
  EXPECT_EQ(meter.stopped_by(), Limit::kInterrupted);
}

TEST(WorkMeterTest, APartSpendsFromWhatIsLeft) {
  const Deadline deadline(0, {});
  WorkMeter meter(deadline, 100);
  meter.spend(80);
  WorkMeter part = meter.part(50);
  EXPECT_FALSE(part.spend(20));  // 20 were left
  meter.merge(part);
  EXPECT_EQ(meter.used(), 100u);
  EXPECT_TRUE(meter.is_spent());
  EXPECT_TRUE(meter.part(5).is_spent());
}

}  // namespace
}  // namespace shardplan
