#include "planner/overlap/place_chain.h"

#include <gtest/gtest.h>

#include <algorithm>
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

PlaceChain chain_of(const std::vector<Place>& places) {
  std::vector<PlaceChain::Item> items;
  for (const Place& one : places) items.push_back({&one.before, one.waiting});
  return PlaceChain(std::move(items));
}

bool none_excluded(std::size_t, std::size_t) { return false; }

bool may_meet(const std::vector<Place>& places, const std::vector<Place>& others) {
  const PlaceChain chain = chain_of(places), other = chain_of(others);
  return PlacesBehind(chain, kOperators).may_meet(other, none_excluded);
}

TEST(PlaceChainTest, StandsInTheOrderOfWhatIsBefore) {
  const std::vector<Place> places{place({0, 1, 2}, {3}), place({0}, {1}), place({0, 4}, {5})};
  const PlaceChain chain = chain_of(places);
  ASSERT_EQ(chain.size(), 3u);
  EXPECT_EQ(chain.number(0), 1u);
  EXPECT_EQ(chain.number(1), 2u);
  EXPECT_EQ(chain.number(2), 0u);
  // 4 is before the second, but not before the last.
  EXPECT_EQ(chain.before_all(1).words(), place({0}, {}).before.words());
  EXPECT_EQ(chain.before_all(2).words(), places[0].before.words());
}

TEST(PlaceChainTest, WhatWaitsForOneAndIsBeforeTheOtherKeepsThemApart) {
  EXPECT_FALSE(may_meet({place({0}, {1})}, {place({0, 1}, {2})}));
  EXPECT_FALSE(may_meet({place({0, 1}, {2})}, {place({0}, {1})}));
  EXPECT_TRUE(may_meet({place({0}, {2})}, {place({0, 1}, {3})}));
  // The second of these is over before the one there begins, the first is not.
  EXPECT_TRUE(may_meet({place({0}, {9}), place({0}, {1})}, {place({0, 1}, {2})}));
}

// Against all pairs: of copies in layers, of which each waits for what is before it in its own layer as well, and of any.
TEST(PlaceChainTest, AnswersAsAllPairsDo) {
  std::size_t met = 0, cases = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto random_places = [&] {
      std::vector<Place> places;
      const std::size_t layers = 1 + random.below(8);
      const bool is_layered = random.below(4) != 0;
      const std::size_t waits_behind = 1 + random.below(3);
      for (std::size_t layer = 0; layer < layers; ++layer) {
        Place one;
        for (std::size_t op = 0; op < kOperators; ++op) {
          const bool is_before = is_layered ? op % 10 < 8 && op / 10 < layer : random.below(3) == 0;
          if (is_before || random.below(50) == 0) one.before.insert(OperatorId(op));
        }
        for (std::size_t i = 0; i < waits_behind; ++i) {
          const std::size_t op = is_layered ? 10 * layer + random.below(10) : random.below(kOperators);
          one.waiting.push_back(OperatorId(op));
        }
        places.push_back(std::move(one));
      }
      return places;
    };
    const std::vector<Place> places = random_places(), others = random_places();
    std::vector<char> is_excluded(places.size() * others.size());
    for (char& one : is_excluded) one = random.below(3) == 0;
    const auto excluded = [&](std::size_t a, std::size_t b) { return is_excluded[a * others.size() + b] != 0; };
    const auto over_before = [](const Place& a, const Place& b) {
      return std::any_of(a.waiting.begin(), a.waiting.end(), [&](OperatorId op) { return b.before.contains(op); });
    };
    bool expected = false;
    for (std::size_t a = 0; a < places.size(); ++a) {
      for (std::size_t b = 0; b < others.size(); ++b) {
        const bool are_apart = over_before(places[a], others[b]) || over_before(others[b], places[a]);
        expected = expected || (!are_apart && !excluded(a, b));
      }
    }
    const PlaceChain chain = chain_of(places), other = chain_of(others);
    EXPECT_EQ(PlacesBehind(chain, kOperators).may_meet(other, excluded), expected);
    met += expected ? 1 : 0;
    ++cases;
  }
  EXPECT_GT(met, cases / 10);
  EXPECT_LT(met, cases * 9 / 10);
}

}  // namespace
}  // namespace shardplan
