#include "solver/presolve/time_compression.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

/// Nodes that hold 0 or `bytes` over a life each, under limits by time.
struct Life {
  std::uint32_t begin, end;
  Bytes bytes;
};
StrategyProblem lives(const std::vector<Life>& lives, std::vector<Bytes> limits) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{1, 0}, {0, 0}}}};
  for (const Life& life : lives) {
    const UsageTableId usage = problem.usage_tables.push_back({{0, life.bytes}});
    problem.nodes.push_back({StrategyTableId(0), {{usage, life.begin, life.end}}});
  }
  problem.memory_limits = std::move(limits);
  return problem;
}

std::vector<Bytes> kept_limits(const StrategyProblem& problem) {
  ReductionGraph graph = graph_of(problem);
  compress_times(graph);
  for_each_values(graph, [&](const std::vector<std::uint32_t>& values) {
    EXPECT_EQ(fits_in_graph(graph, values), evaluate(problem, graph.expand(values)).worst_excess <= 0);
  });
  return graph.memory_limits();
}

TEST(TimeCompressionTest, TimesAtWhichAllFitsGo) {
  EXPECT_EQ(kept_limits(lives({{0, 2, 5}, {1, 3, 5}}, {9, 9, 9})), std::vector<Bytes>{9});  // both live at time 1
  EXPECT_EQ(kept_limits(lives({{0, 2, 5}, {1, 3, 5}}, {10, 10, 10})), std::vector<Bytes>{});
}

TEST(TimeCompressionTest, ATimeThatAnotherImpliesGoes) {
  // From time 0 to time 1 one node is born, so time 1 implies time 0, though both bind.
  EXPECT_EQ(kept_limits(lives({{0, 2, 5}, {0, 2, 5}, {1, 2, 5}}, {9, 9})), std::vector<Bytes>{9});
  // With more room at time 1 than what is born there takes, time 0 implies time 1.
  EXPECT_EQ(kept_limits(lives({{0, 2, 5}, {0, 2, 5}, {1, 2, 5}}, {9, 14})), std::vector<Bytes>{9});
  EXPECT_EQ(kept_limits(lives({{0, 2, 5}, {0, 2, 5}, {1, 2, 5}}, {9, 13})), (std::vector<Bytes>{9, 13}));
}

TEST(TimeCompressionTest, IsExactOnRandomLives) {
  std::size_t num_gone = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto times = static_cast<std::uint32_t>(1 + random.below(7));
    std::vector<Life> items;
    for (std::uint64_t i = 1 + random.below(6); i > 0; --i) {
      const auto begin = static_cast<std::uint32_t>(random.below(times));
      const auto end = begin + 1 + static_cast<std::uint32_t>(random.below(times - begin));
      items.push_back({begin, end, static_cast<Bytes>(1 + random.below(9))});
    }
    std::vector<Bytes> limits;
    for (std::uint32_t time = 0; time < times; ++time) limits.push_back(static_cast<Bytes>(random.below(25)));
    num_gone += times - kept_limits(lives(items, limits)).size();
    if (HasFailure()) return;
  }
  EXPECT_GT(num_gone, 500u);
}

}  // namespace
}  // namespace shardplan
