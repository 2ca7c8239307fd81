#include "planner/overlap/together.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"

namespace shardplan {
namespace {

constexpr std::size_t kOperators = 100;

struct Place {
  OperatorSet before = OperatorSet(kOperators);
  std::vector<OperatorId> waiting;
};

Place place(const std::vector<std::size_t>& before, const std::vector<std::size_t>& waiting) {
  Place result;
  for (const std::size_t op : before) result.before.insert(OperatorId(op));
  for (const std::size_t op : waiting) result.waiting.push_back(OperatorId(op));
  return result;
}

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

/// By group: the groups that it may run at the same time with. Without `groups`, each communication is its own group.
std::vector<std::vector<std::size_t>> together_of(const std::vector<Place>& places, const Pairs& known = {},
                                                  std::vector<std::size_t> groups = {}) {
  std::vector<PlacedCommunication> communications;
  for (std::size_t i = 0; i < places.size(); ++i) {
    communications.push_back({&places[i].before, places[i].waiting, groups.empty() ? i : groups[i]});
  }
  const std::size_t num_groups = groups.empty() ? places.size() : *std::ranges::max_element(groups) + 1;
  std::vector<std::vector<std::size_t>> result;
  for (const OperatorSet& set : together(communications, num_groups, known, kOperators)) {
    result.emplace_back();
    set.for_each([&](OperatorId one) { result.back().push_back(one.value()); });
  }
  return result;
}

using Sets = std::vector<std::vector<std::size_t>>;

TEST(TogetherTest, WhatWaitsForOneAndIsBeforeTheOtherKeepsThemApart) {
  EXPECT_EQ(together_of({place({0}, {1}), place({0, 1}, {2})}), (Sets{{}, {}}));
  EXPECT_EQ(together_of({place({0}, {2}), place({0, 1}, {3})}), (Sets{{1}, {0}}));
  EXPECT_EQ(together_of({place({0}, {2}), place({0, 1}, {3})}, {{0, 1}}), (Sets{{}, {}}));
  // The first one may overlap with both; the second is over before the third begins.
  const std::vector<Place> places{place({0}, {9}), place({0}, {1}), place({0, 1}, {2})};
  EXPECT_EQ(together_of(places), (Sets{{1, 2}, {0}, {0}}));
  EXPECT_EQ(together_of(places, {}, {0, 0, 1}), (Sets{{0, 1}, {0}}));
  EXPECT_EQ(together_of(places, {}, {0, 1, 1}), (Sets{{1}, {0}}));
}

TEST(TogetherTest, AnswersAsAllPairsDo) {
  std::size_t met = 0, pairs = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    // Copies in layers, each of which also waits for what precedes it in its own layer, or arbitrary communications.
    std::vector<Place> places;
    const std::size_t layers = 1 + random.below(12);
    const bool is_layered = random.below(4) != 0;
    const std::size_t waits_behind = 1 + random.below(3);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      Place one;
      for (std::size_t op = 0; op < kOperators; ++op) {
        const bool is_before = is_layered ? op % 10 < 8 && op / 10 < layer : random.below(3) == 0;
        if (is_before || random.below(50) == 0) one.before.insert(OperatorId(op));
      }
      for (std::size_t i = 0; i < waits_behind; ++i) {
        one.waiting.push_back(
            OperatorId(is_layered ? (10 * layer + random.below(10)) % kOperators : random.below(kOperators)));
      }
      places.push_back(std::move(one));
    }
    Pairs known;
    for (std::size_t a = 0; a < layers; ++a) {
      for (std::size_t b = a + 1; b < layers; ++b) {
        if (random.below(10) == 0) known.emplace_back(a, b);
      }
    }
    const auto over_before = [&](std::size_t a, std::size_t b) {
      return std::ranges::find(known, std::pair(a, b)) != known.end() ||
             std::ranges::any_of(places[a].waiting, [&](OperatorId op) { return places[b].before.contains(op); });
    };
    const std::size_t num_groups = 1 + random.below(layers);
    std::vector<std::size_t> groups(layers, num_groups - 1);
    for (std::size_t i = 0; i + 1 < layers; ++i) groups[i] = random.below(num_groups);
    std::vector<std::set<std::size_t>> expected(num_groups);
    for (std::size_t a = 0; a < layers; ++a) {
      for (std::size_t b = 0; b < layers; ++b) {
        if (a == b) continue;
        ++pairs;
        if (over_before(a, b) || over_before(b, a)) continue;
        ++met;
        expected[groups[a]].insert(groups[b]);
      }
    }
    Sets sets;
    for (const std::set<std::size_t>& one : expected) sets.emplace_back(one.begin(), one.end());
    EXPECT_EQ(together_of(places, known, groups), sets);
  }
  EXPECT_GT(met, pairs / 10);
  EXPECT_LT(met, pairs * 9 / 10);
}

}  // namespace
}  // namespace shardplan
