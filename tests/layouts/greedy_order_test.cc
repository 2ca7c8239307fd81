#include "layouts/redistribution/greedy_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

namespace shardplan {
namespace {

using Kind = GreedyMove::Kind;
constexpr std::int64_t kNo = kNotSharded;

TEST(GreedyOrderTest, TakesTheMovesOfTheTable) {  // greedy_order.h: x is 0, y is 1
  using Moves = std::vector<GreedyMove>;
  EXPECT_EQ(greedy_order({0, kNo, kNo}, {kNo, 0, kNo}), (Moves{{Kind::kExchange, 1, 0}}));
  EXPECT_EQ(greedy_order({0, kNo, kNo}, {1, kNo, kNo}), (Moves{{Kind::kGather, 0}, {Kind::kSlice, 0}}));
  EXPECT_EQ(greedy_order({0, 1, kNo}, {1, 0, kNo}),
            (Moves{{Kind::kGather, 0}, {Kind::kExchange, 0, 1}, {Kind::kSlice, 1}}));
  EXPECT_EQ(greedy_order({0, 1, kNo}, {0, 1, kNo}), Moves{});
}

/// All pairs of maps of n axes to n digits: replayed, each move is possible and the last one gives the target; the
/// numbers of moves are those of a run of MindSpore's inference.
TEST(GreedyOrderTest, ReachesTheTargetInTheKnownNumbersOfMoves) {
  const struct {
    std::size_t n;
    std::map<std::size_t, int> lengths;
    std::map<Kind, int> kinds;
  } kRuns[] = {
      {2, {{1, 20}, {2, 20}, {3, 2}}, {{Kind::kSlice, 26}, {Kind::kGather, 26}, {Kind::kExchange, 14}}},
      {3, {{1, 180}, {2, 450}, {3, 444}, {4, 48}}, {{Kind::kSlice, 903}, {Kind::kGather, 903}, {Kind::kExchange, 798}}},
  };
  for (const auto& run : kRuns) {
    std::vector<std::vector<std::int64_t>> maps;
    std::vector<std::int64_t> map(run.n, kNo);
    const std::function<void(std::size_t)> fill = [&](std::size_t d) {
      if (d == run.n) return maps.push_back(map);
      for (std::int64_t axis = kNo; axis < static_cast<std::int64_t>(run.n); ++axis) {
        if (axis != kNo && std::find(map.begin(), map.begin() + static_cast<std::ptrdiff_t>(d), axis) !=
                               map.begin() + static_cast<std::ptrdiff_t>(d)) {
          continue;
        }
        map[d] = axis;
        fill(d + 1);
      }
      map[d] = kNo;
    };
    fill(0);
    std::map<std::size_t, int> lengths;
    std::map<Kind, int> kinds;
    for (const auto& from : maps) {
      for (const auto& to : maps) {
        if (from == to) continue;
        const std::vector<GreedyMove> moves = greedy_order(from, to);
        ++lengths[moves.size()];
        std::vector<std::int64_t> now = from;
        for (const GreedyMove& move : moves) {
          ++kinds[move.kind];
          std::int64_t& digit = now[move.digit];
          if (move.kind == Kind::kGather) {
            EXPECT_NE(digit, kNo);
            digit = kNo;
            continue;
          }
          EXPECT_EQ(digit, kNo);
          if (move.kind == Kind::kExchange) {
            digit = std::exchange(now[move.from], kNo);
          } else {
            EXPECT_EQ(std::count(now.begin(), now.end(), to[move.digit]), 0);
            digit = to[move.digit];
          }
        }
        EXPECT_EQ(now, to);
      }
    }
    EXPECT_EQ(lengths, run.lengths);
    EXPECT_EQ(kinds, run.kinds);
  }
}

}  // namespace
}  // namespace shardplan
