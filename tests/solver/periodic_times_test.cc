#include "solver/periodic_times.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace shardplan {
namespace {

using Times = std::vector<std::uint32_t>;

TEST(PeriodicTimesTest, KeepsTheFirstAndTheLastPeriodOfAStretch) {
  const Times changes = {0, 1, 2, 3, 4, 3, 4, 3, 4, 3, 4, 5};
  const PeriodicTimes times = periodic_times(changes, Times{2});
  EXPECT_EQ(times.kept, (Times{0, 1, 2, 3, 4, 9, 10, 11}));
  // Time 5 is the mean of times 3 and 9, which are at positions 3 and 5.
  EXPECT_EQ(times.between[5], (std::pair<std::uint32_t, std::uint32_t>(3, 5)));
  EXPECT_EQ(times.between[8], (std::pair<std::uint32_t, std::uint32_t>(4, 6)));
  EXPECT_EQ(times.between[9], (std::pair<std::uint32_t, std::uint32_t>(5, 5)));
}

TEST(PeriodicTimesTest, KeepsAllWhereNothingRepeats) {
  const PeriodicTimes times = periodic_times(Times{0, 1, 2, 3, 4}, Times{1, 2});
  EXPECT_EQ(times.kept, (Times{0, 1, 2, 3, 4}));
  EXPECT_EQ(periodic_times(Times{}, Times{1}).kept, Times{});
  EXPECT_EQ(periodic_times(Times{7, 7, 7, 7, 7}, Times{1}).kept, (Times{0, 4}));
  EXPECT_EQ(periodic_times(Times{7, 7, 7, 7, 7}, Times{0}).kept.size(), 5u);
}

// The bytes of any time are the documented weighted mean, whatever the changes are.
TEST(PeriodicTimesTest, EveryTimeIsAMeanOfTheTwoItIsBetween) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<std::int64_t> change_of;
    for (int i = 0; i < 4; ++i) change_of.push_back(static_cast<std::int64_t>(random.below(21)) - 10);
    Times changes, periods;
    for (std::uint64_t stretch = 1 + random.below(4); stretch > 0; --stretch) {
      Times pattern;
      for (std::uint64_t i = 1 + random.below(5); i > 0; --i) {
        pattern.push_back(static_cast<std::uint32_t>(random.below(change_of.size())));
      }
      periods.push_back(static_cast<std::uint32_t>(pattern.size() * (1 + random.below(2))));
      for (std::uint64_t times = random.below(12); times > 0; --times) {
        changes.insert(changes.end(), pattern.begin(), pattern.end());
      }
      for (std::uint64_t i = random.below(3); i > 0; --i) {
        changes.push_back(static_cast<std::uint32_t>(random.below(change_of.size())));
      }
    }
    std::vector<std::int64_t> bytes;
    for (const std::uint32_t change : changes) bytes.push_back((bytes.empty() ? 0 : bytes.back()) + change_of[change]);
    const PeriodicTimes times = periodic_times(changes, periods);
    ASSERT_EQ(times.between.size(), changes.size());
    for (std::size_t time = 0; time < changes.size(); ++time) {
      const std::size_t before = times.kept.at(times.between[time].first);
      const std::size_t after = times.kept.at(times.between[time].second);
      ASSERT_LE(before, time);
      ASSERT_LE(time, after);
      if (before == after) {
        EXPECT_EQ(before, time);
        continue;
      }
      const auto width = static_cast<std::int64_t>(after - before), left = static_cast<std::int64_t>(time - before);
      EXPECT_EQ(bytes[time] * width, bytes[before] * (width - left) + bytes[after] * left);
    }
  }
}

}  // namespace
}  // namespace shardplan
