#include "base/side_by_side.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
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

TEST(SideBySideTest, WhatIsBegunBesideEndsWithItsResultOrItsException) {
  std::future<int> result = begin_beside([] { return 7; });
  EXPECT_EQ(result.get(), 7);
  std::future<int> thrown = begin_beside([]() -> int { throw std::runtime_error("7"); });
  EXPECT_THROW(thrown.get(), std::runtime_error);
}

// A thread's stack takes some megabytes of address space, which the limit denies.
TEST(SideBySideTest, WithoutAnyThreadItIsDoneAllTheSame) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer needs addresses of its own";
#else
  const auto do_all = [] {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t addresses = pages * 4096 + (4 << 20);
    const rlimit limit{addresses, addresses};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(1);
    std::vector<std::jthread> all;
    try {
      while (all.size() < 1000) all.emplace_back([] { pause(); });
      std::_Exit(2);
    } catch (const std::system_error&) {
    }
    int calls = 0;
    side_by_side(4, 50, [&](std::size_t thread, std::size_t) { calls += thread == 0 ? 1 : 0; });
    if (calls != 50) std::_Exit(3);
    if (begin_beside([] { return 7; }).get() != 7) std::_Exit(4);
    std::_Exit(0);
  };
  EXPECT_EXIT(do_all(), testing::ExitedWithCode(0), "");
#endif
}

}  // namespace
}  // namespace shardplan
