#include "base/side_by_side.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

namespace shardplan {
namespace {

TEST(SideBySideTest, EachIsDoneOnceOnNoMoreThreadsThanAskedFor) {
  for (const std::size_t threads : {0, 1, 2, 5}) {
    for (const std::size_t count : {0, 1, 3, 200}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, " + std::to_string(count) + " calls");
      std::vector<int> calls(count, 0);
      std::mutex mutex;
      std::set<std::size_t> seen;
      side_by_side(threads, count, [&](std::size_t thread, std::size_t i) {
        ++calls[i];
        const std::lock_guard lock(mutex);
        seen.insert(thread);
      });
      EXPECT_EQ(calls, std::vector<int>(count, 1));
      if (!seen.empty()) {
        EXPECT_LT(*seen.rbegin(), std::max<std::size_t>(threads, 1));
      }
    }
  }
}

TEST(SideBySideTest, OfWhatIsThrownTheFirstOneArrivesAndAllAreDone) {
  for (const std::size_t threads : {1, 3}) {
    std::vector<int> calls(50, 0);
    try {
      side_by_side(threads, calls.size(), [&](std::size_t, std::size_t i) {
        ++calls[i];
        if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing arrived";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
    EXPECT_EQ(calls, std::vector<int>(50, 1));
  }
}

}  // namespace
}  // namespace shardplan
