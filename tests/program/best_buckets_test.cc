#include "program/best_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/random.h"

namespace shardplan {
namespace {

constexpr Picoseconds kLaunch = 7;
Picoseconds takes(Bytes bytes) { return kLaunch + 2 * bytes; }

/// The end of the step if each of these groups is one collective and they are issued in this order.
Picoseconds step_of(const std::vector<WaitingCollective>& all, const std::vector<std::vector<std::size_t>>& groups) {
  Picoseconds link = 0, step = 0;
  for (const std::vector<std::size_t>& group : groups) {
    Bytes bytes = 0;
    Picoseconds ready = 0, tail = 0;
    for (const std::size_t i : group) {
      bytes += all[i].bytes;
      ready = std::max(ready, all[i].ready);
      tail = std::max(tail, all[i].tail);
    }
    link = std::max(link, ready) + takes(bytes);
    step = std::max(step, link + tail);
  }
  return step;
}

std::vector<std::vector<std::size_t>> groups_of(std::size_t count, const std::vector<std::size_t>& begins) {
  std::vector<std::vector<std::size_t>> groups;
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (next < begins.size() && begins[next] == i) {
      groups.emplace_back();
      ++next;
    }
    groups.back().push_back(i);
  }
  return groups;
}

std::vector<WaitingCollective> random_collectives(Random& random, std::size_t count, bool has_tails) {
  std::vector<WaitingCollective> all;
  Picoseconds ready = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ready += static_cast<Picoseconds>(random.below(14));
    all.push_back(
        {ready, static_cast<Bytes>(1 + random.below(6)), has_tails ? static_cast<Picoseconds>(random.below(40)) : 0});
  }
  return all;
}

TEST(BestBucketsTest, WaitsForWhatComesSoonAndNotForWhatComesLate) {
  using All = std::vector<WaitingCollective>;
  using Begins = std::vector<std::size_t>;
  EXPECT_EQ(best_buckets(All{{0, 1, 0}, {1, 1, 0}}, takes), (Begins{0}));  // 1 + 7 + 4 instead of 9 + 9
  EXPECT_EQ(best_buckets(All{{0, 1, 0}, {90, 1, 0}}, takes), (Begins{0, 1}));
  EXPECT_TRUE(best_buckets({}, takes).empty());
  // What follows the first keeps it from waiting for the second, although the link would be free earlier.
  EXPECT_EQ(best_buckets(All{{0, 1, 30}, {8, 1, 0}}, takes), (Begins{0, 1}));
}

// The oracle: all 2^(n-1) ways to split the sequence.
TEST(BestBucketsTest, IsTheBestOfAllCuts) {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t count = 1 + random.below(10);
    const std::vector<WaitingCollective> all = random_collectives(random, count, seed % 2 == 0);
    Picoseconds least = std::numeric_limits<Picoseconds>::max();
    for (std::uint64_t cuts = 0; cuts < (std::uint64_t{1} << (count - 1)); ++cuts) {
      std::vector<std::size_t> begins{0};
      for (std::size_t i = 1; i < count; ++i) {
        if ((cuts >> (i - 1) & 1) != 0) begins.push_back(i);
      }
      least = std::min(least, step_of(all, groups_of(count, begins)));
    }
    EXPECT_EQ(step_of(all, groups_of(count, best_buckets(all, takes))), least);
  }
}

// If the link is never free, everything waits for everything. A bucket's maximal time bounds the work; the step is at
// most a thousandth longer than with the best split, which is a single bucket, as nothing depends on single results.
TEST(BestBucketsTest, TheWorkIsLinearWhereTheLinkStaysBusy) {
  const auto buckets_of = [](std::size_t count, std::size_t& asked) {
    const std::vector<WaitingCollective> all(count, {0, 100, 0});
    const std::vector<std::size_t> begins = best_buckets(all, [&](Bytes bytes) {
      ++asked;
      return takes(bytes);
    });
    const auto step = static_cast<double>(step_of(all, groups_of(count, begins)));
    EXPECT_LE(step, 1.001 * static_cast<double>(step_of(all, groups_of(count, {0}))));
    return begins.size();
  };
  std::size_t asked_of_few = 0, asked_of_many = 0;
  EXPECT_GT(buckets_of(300, asked_of_few), 1u);
  EXPECT_GT(buckets_of(3000, asked_of_many), 10u);
  EXPECT_LE(asked_of_many, 11 * asked_of_few);
}

using Groups = std::vector<std::vector<std::size_t>>;

/// Calls `visit` with every way to put 0 .. count - 1 into groups, and every order of the groups.
template <class Visit>
void for_each_grouping(std::size_t count, Groups& groups, std::size_t next, const Visit& visit) {
  if (next == count) {
    Groups order = groups;
    std::sort(order.begin(), order.end());
    do {
      visit(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return;
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].push_back(next);
    for_each_grouping(count, groups, next + 1, visit);
    groups[g].pop_back();
  }
  groups.push_back({next});
  for_each_grouping(count, groups, next + 1, visit);
  groups.pop_back();
}

// If nothing waits for single results, only groups of neighbours in the order in which they are ready need to be
// considered: no other grouping in any order ends earlier.
TEST(BestBucketsTest, NoGroupingInAnyOrderFreesTheLinkEarlier) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::size_t count = 1 + random.below(5);
    const std::vector<WaitingCollective> all = random_collectives(random, count, false);
    Picoseconds least = std::numeric_limits<Picoseconds>::max();
    Groups groups;
    for_each_grouping(count, groups, 0, [&](const Groups& order) { least = std::min(least, step_of(all, order)); });
    EXPECT_EQ(step_of(all, groups_of(count, best_buckets(all, takes))), least);
  }
}

}  // namespace
}  // namespace shardplan
