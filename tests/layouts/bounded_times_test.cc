#include "layouts/redistribution/search/bounded_times.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace shardplan {
namespace {

constexpr Picoseconds kNone = INT64_MAX / 4;

struct Graph {
  std::vector<std::int64_t> sizes;
  std::vector<std::vector<Picoseconds>> costs;  // kNone: no arc
};

Graph random_graph(Random& random, std::size_t most_states) {
  Graph graph;
  const std::size_t n = 1 + random.below(most_states);
  const std::uint64_t percent = 15 + random.below(60);
  for (std::size_t i = 0; i < n; ++i) graph.sizes.push_back(static_cast<std::int64_t>(1 + random.below(5)));
  graph.costs.assign(n, std::vector<Picoseconds>(n, kNone));
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (random.below(100) < percent) graph.costs[a][b] = static_cast<Picoseconds>(random.below(20));
    }
  }
  return graph;
}

/// Floyd and Warshall's algorithm over the states within the bound.
Picoseconds least_time(const Graph& graph, std::size_t from, std::size_t to, std::int64_t bound) {
  std::vector<std::vector<Picoseconds>> best = graph.costs;
  const std::size_t n = graph.sizes.size();
  for (std::size_t i = 0; i < n; ++i) best[i][i] = 0;
  for (std::size_t via = 0; via < n; ++via) {
    if (graph.sizes[via] > bound) continue;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) best[a][b] = std::min(best[a][b], best[a][via] + best[via][b]);
    }
  }
  return best[from][to];
}

/// `arc_times`: those of the answer's arcs.
BoundedTimes times_of(const Graph& graph, std::vector<Picoseconds>& arc_times) {
  const std::size_t n = graph.sizes.size();
  std::vector<std::size_t> first_arc = {0};
  std::vector<BoundedTimes::Arc> arcs;
  std::vector<Picoseconds> costs;
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (graph.costs[a][b] == kNone) continue;
      arcs.push_back({static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(costs.size())});
      costs.push_back(graph.costs[a][b]);
    }
    first_arc.push_back(arcs.size());
  }
  BoundedTimes times(graph.sizes, first_arc, arcs);
  for (const BoundedTimes::Arc& arc : times.arcs()) arc_times.push_back(costs[arc.cost]);
  return times;
}

TEST(BoundedTimesTest, AreThoseOfAllPathsWithinTheBound) {
  constexpr std::uint64_t kSeed = 17;
  Random random(kSeed);
  std::size_t longer = 0, above = 0, slower = 0;
  for (int round = 0; round < 400; ++round) {
    const Graph graph = random_graph(random, 9);
    const std::size_t n = graph.sizes.size();
    std::vector<Picoseconds> arc_times;
    BoundedTimes times = times_of(graph, arc_times);
    ASSERT_EQ(times.num_states(), n);
    for (std::uint32_t a = 0; a < n; ++a) {
      const std::vector<Picoseconds> bounded = times.row(a, arc_times, LargestOnWay::kEnds);
      const std::vector<Picoseconds> least = times.row(a, arc_times, LargestOnWay::kLeast);
      const std::vector<Picoseconds> free = times.row(a, arc_times, LargestOnWay::kAny);
      for (std::size_t b = 0; b < n; ++b) {
        const auto expected = [&](std::int64_t bound) {
          const Picoseconds time = least_time(graph, a, b, bound);
          return time >= kNone ? BoundedTimes::kNoPath : time;
        };
        ASSERT_EQ(bounded[b], expected(std::max(graph.sizes[a], graph.sizes[b])))
            << a << " to " << b << ", seed " << kSeed << ", round " << round;
        ASSERT_EQ(free[b], expected(INT64_MAX)) << a << " to " << b << ", seed " << kSeed << ", round " << round;
        std::int64_t bound = std::max(graph.sizes[a], graph.sizes[b]);
        while (bound < 5 && expected(bound) == BoundedTimes::kNoPath) ++bound;
        ASSERT_EQ(least[b], expected(bound)) << a << " to " << b << ", seed " << kSeed << ", round " << round;
        longer += bounded[b] != free[b] ? 1 : 0;
        above += bounded[b] != least[b] ? 1 : 0;
        slower += bounded[b] != least[b] && least[b] != free[b] ? 1 : 0;
      }
    }
  }
  EXPECT_GT(longer, 500u);  // the bound matters
  EXPECT_GT(above, 100u);
  EXPECT_GT(slower, 10u);
}

// With several groups of eight states of each size, states that nothing leads to, and in every third round times that
// doubles cannot hold exactly.
TEST(BoundedTimesTest, AllAtOnceAreTheRowsOneByOne) {
  constexpr std::uint64_t kSeed = 23;
  Random random(kSeed);
  std::size_t without_path = 0;
  for (int round = 0; round < 60; ++round) {
    Graph graph = random_graph(random, 90);
    const std::size_t n = graph.sizes.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t a = 0; i % 7 == 0 && a < n; ++a) graph.costs[a][i] = kNone;
    }
    std::vector<Picoseconds> arc_times;
    BoundedTimes times = times_of(graph, arc_times);
    for (Picoseconds& time : arc_times) {
      if (round % 3 == 0) time = (time << 50) + static_cast<Picoseconds>(random.below(1000));
    }
    for (const LargestOnWay largest : {LargestOnWay::kAny, LargestOnWay::kEnds, LargestOnWay::kLeast}) {
      const std::vector<Picoseconds> all = times.all(arc_times, largest);
      ASSERT_EQ(all.size(), n * n);
      for (std::uint32_t a = 0; a < n; ++a) {
        const std::vector<Picoseconds> row = times.row(a, arc_times, largest);
        for (std::uint32_t b = 0; b < n; ++b) {
          ASSERT_EQ(all[times.place(a) * n + times.place(b)], row[b])
              << a << " to " << b << ", seed " << kSeed << ", round " << round;
          without_path += row[b] == BoundedTimes::kNoPath ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(without_path, 1000u);
}

}  // namespace
}  // namespace shardplan
