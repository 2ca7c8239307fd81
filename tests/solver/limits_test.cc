#include "solver/limits.h"

#include <gtest/gtest.h>

#include <thread>

namespace shardplan {
namespace {

TEST(LimitsTest, ADeadlineWithoutSecondsIsOverOnlyWhenItIsStopped) {
  std::stop_source stop;
  const Deadline deadline(0, stop.get_token());
  EXPECT_FALSE(deadline.is_over());
  EXPECT_EQ(deadline.reached(), std::nullopt);
  stop.request_stop();
  EXPECT_TRUE(deadline.is_over());
  EXPECT_EQ(deadline.reached(), Limit::kInterrupted);
}

TEST(LimitsTest, ADeadlineEndsByTheClock) {
  const Deadline deadline(1e-9, {});
  std::this_thread::sleep_for(std::chrono::microseconds(10));
  EXPECT_TRUE(deadline.is_over());
  EXPECT_EQ(deadline.reached(), Limit::kTime);
  EXPECT_FALSE(Deadline(3600, {}).is_over());
}

TEST(LimitsTest, APartEndsEarlierAndStopsWithTheWhole) {
  std::stop_source stop;
  const Deadline whole(3600, stop.get_token());
  EXPECT_TRUE(whole.part(1e-12).is_over());
  EXPECT_FALSE(whole.part(0.5).is_over());
  const Deadline part = whole.part(0.5);
  stop.request_stop();
  EXPECT_EQ(part.reached(), Limit::kInterrupted);
  EXPECT_FALSE(Deadline(0, {}).part(0.5).is_over());  // a part of no limit is no limit
}

TEST(LimitsTest, OfSeveralLimitsTheOneThatARunDependsOnMostCounts) {
  using Optional = std::optional<Limit>;
  EXPECT_EQ(std::max(Optional(), Optional(Limit::kGap)), Limit::kGap);
  EXPECT_EQ(std::max(Optional(Limit::kGap), Optional(Limit::kWork)), Limit::kWork);
  EXPECT_EQ(std::max(Optional(Limit::kTime), Optional(Limit::kWork)), Limit::kTime);
  EXPECT_EQ(std::max(Optional(Limit::kTime), Optional(Limit::kInterrupted)), Limit::kInterrupted);
}

}  // namespace
}  // namespace shardplan
