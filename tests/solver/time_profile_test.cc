#include "solver/time_profile.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace shardplan {
namespace {

TEST(TimeProfileTest, AddsUpWhatIsHeldAtEachTime) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t times = random.below(10);
    TimeProfile profile(times);
    std::vector<Int128> expected(times, 0);
    for (int range = 0; range < 20; ++range) {
      const std::size_t begin = random.below(times + 1);
      const std::size_t end = begin + random.below(times - begin + 1);
      const auto bytes = static_cast<Bytes>(random.below(1000)) - 500;
      profile.add(begin, end, bytes);
      for (std::size_t time = begin; time < end; ++time) expected[time] += bytes;
    }
    EXPECT_TRUE(profile.sums() == expected);
  }
}

TEST(TimeProfileTest, SumsLeave64Bits) {
  constexpr Bytes kMost = std::numeric_limits<Bytes>::max();
  TimeProfile profile(2);
  for (int i = 0; i < 4; ++i) profile.add(0, 2, kMost);
  EXPECT_TRUE(profile.sums()[1] == static_cast<Int128>(kMost) * 4);
}

}  // namespace
}  // namespace shardplan
