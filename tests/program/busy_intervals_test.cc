#include "program/busy_intervals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace shardplan {
namespace {

TEST(BusyIntervalsTest, FindsTheFirstGapThatIsLongEnough) {
  BusyIntervals busy;
  EXPECT_EQ(busy.first_gap(3, 100), 3);
  busy.add(9, 10);
  busy.add(2, 5);
  EXPECT_EQ(busy.first_gap(0, 2), 0);
  EXPECT_EQ(busy.first_gap(1, 2), 5);
  EXPECT_EQ(busy.first_gap(5, 4), 5);
  EXPECT_EQ(busy.first_gap(4, 5), 10);
}

TEST(BusyIntervalsTest, AgreesWithAListOfBusyTimes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    BusyIntervals busy;
    std::vector<char> is_busy(400, 0);
    for (int i = 0; i < 40; ++i) {
      const auto earliest = static_cast<Picoseconds>(random.below(100));
      const auto length = static_cast<Picoseconds>(1 + random.below(5));
      Picoseconds expected = earliest;
      const auto collides = [&] {
        return std::any_of(is_busy.begin() + expected, is_busy.begin() + expected + length,
                           [](char one) { return one != 0; });
      };
      while (collides()) ++expected;
      EXPECT_EQ(busy.first_gap(earliest, length), expected);
      busy.add(expected, expected + length);
      std::fill(is_busy.begin() + expected, is_busy.begin() + expected + length, 1);
    }
  }
}

}  // namespace
}  // namespace shardplan
