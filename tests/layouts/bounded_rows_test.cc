#include "layouts/redistribution/search/bounded_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace shardplan {
namespace {

struct RowsGraph {
  BoundedTimes times;
  std::vector<Picoseconds> arc_times;
};

RowsGraph random_rows_graph(Random& random, std::size_t num_states) {
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> first_arc = {0};
  std::vector<BoundedTimes::Arc> arcs;
  for (std::size_t a = 0; a < num_states; ++a) {
    sizes.push_back(static_cast<std::int64_t>(1 + random.below(5)));
    for (std::uint32_t b = 0; b < num_states; ++b) {
      if (random.below(8) == 0) arcs.push_back({b, static_cast<std::uint32_t>(random.below(20))});
    }
    first_arc.push_back(arcs.size());
  }
  RowsGraph graph{BoundedTimes(sizes, first_arc, arcs), {}};
  for (const BoundedTimes::Arc& arc : graph.times.arcs()) graph.arc_times.push_back(arc.cost);
  return graph;
}

// The first rows are computed one by one, from the fifth of 70 states on all together, and all are the same.
TEST(BoundedRowsTest, AreTheSameOneByOneAndTogether) {
  constexpr std::uint64_t kSeed = 23;
  Random random(kSeed);
  for (const LargestOnWay largest : {LargestOnWay::kAny, LargestOnWay::kEnds, LargestOnWay::kLeast}) {
    RowsGraph graph = random_rows_graph(random, 70);
    BoundedRows rows;
    std::size_t unreached = 0;
    for (const int turn : {0, 1}) {
      for (std::uint32_t source = 0; source < 70; ++source) {
        const std::vector<Picoseconds> row = graph.times.row(source, graph.arc_times, largest);
        const std::span<const Picoseconds> known = rows.row(graph.times, graph.arc_times, largest, source);
        ASSERT_EQ(known.size(), row.size());
        for (std::uint32_t state = 0; state < 70; ++state) {
          ASSERT_EQ(known[graph.times.place(state)], row[state]) << source << " to " << state << ", seed " << kSeed;
        }
        unreached += static_cast<std::size_t>(std::count(row.begin(), row.end(), BoundedTimes::kNoPath));
      }
      if (turn == 0) rows.clear();
    }
    EXPECT_EQ(unreached > 0, largest == LargestOnWay::kEnds);
    rows.clear();
    // Several at a time, few and many.
    for (const std::uint32_t count : {2u, 60u}) {
      std::vector<std::uint32_t> sources(count);
      for (std::uint32_t& source : sources) source = static_cast<std::uint32_t>(random.below(70));
      const auto found = rows.rows(graph.times, graph.arc_times, largest, sources);
      ASSERT_EQ(found.size(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::vector<Picoseconds> row = graph.times.row(sources[i], graph.arc_times, largest);
        for (std::uint32_t state = 0; state < 70; ++state) ASSERT_EQ(found[i][graph.times.place(state)], row[state]);
      }
    }
  }
}

// In large graphs rows are computed one by one, and rows that were dropped to save memory are found again.
TEST(BoundedRowsTest, RowsOfLargeGraphsAreFoundAgain) {
  constexpr std::uint32_t kManyStates = 2100;
  std::vector<std::size_t> first_arc = {0};
  std::vector<BoundedTimes::Arc> arcs;
  for (std::uint32_t a = 0; a < kManyStates; ++a) {
    arcs.push_back({(a + 1) % kManyStates, 0});
    first_arc.push_back(arcs.size());
  }
  BoundedTimes times(std::vector<std::int64_t>(kManyStates, 1), first_arc, arcs);
  const std::vector<Picoseconds> arc_times(kManyStates, 3);
  BoundedRows rows;
  for (std::uint32_t i = 0; i < 2 * kManyStates; i += 2) {
    const std::uint32_t source = i % kManyStates;
    const std::span<const Picoseconds> row = rows.row(times, arc_times, LargestOnWay::kEnds, source);
    ASSERT_EQ(row.size(), kManyStates);
    ASSERT_EQ(row[times.place((source + 7) % kManyStates)], 21);
    ASSERT_EQ(row[times.place((source + kManyStates - 1) % kManyStates)], 3 * (kManyStates - 1));
  }
}

}  // namespace
}  // namespace shardplan
