#include "solver/presolve/reduction_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "solver/searches/auto_search.h"
#include "tests/support/problems.h"
#include "tests/support/reductions.h"

namespace shardplan {
namespace {

TEST(ReductionMemoryTest, KeepsWhatFitsAndWhatDoesNot) {
  int num_tried = 0;
  for_random_graphs(400, [&](const StrategyProblem& problem, ReductionGraph& graph) {
    graph.remove_singles();
    simplify_memory(graph);
    if (graph.is_infeasible()) {
      expect_exact(problem, graph);
      return;
    }
    for_each_values(graph, [&](const std::vector<std::uint32_t>& values) {
      bool is_marked = false;
      for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
        const ReductionGraph::Node& node = graph.node(id);
        is_marked = is_marked || (node.is_alive && !node.marked.empty() && node.marked[values[id]]);
      }
      const bool fits = evaluate(problem, graph.expand(values)).worst_excess <= 0;
      if (is_marked) {
        EXPECT_FALSE(fits) << describe(problem);
      } else {
        EXPECT_EQ(fits_in_graph(graph, values), fits) << describe(problem);
      }
      ++num_tried;
    });
  });
  EXPECT_GT(num_tried, 1000);
}

TEST(ReductionMemoryTest, SegmentsAreDisjointAndHaveAZero) {
  for_random_graphs(300, [&](const StrategyProblem&, ReductionGraph& graph) {
    simplify_memory(graph);
    if (graph.is_infeasible()) return;
    EXPECT_TRUE(graph.fixed_memory().empty());
    for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
      if (!graph.node(id).is_alive) continue;
      const std::vector<UsageSegment>& memory = graph.node(id).memory;
      for (std::size_t at = 0; at < memory.size(); ++at) {
        EXPECT_LT(memory[at].begin, memory[at].end);
        EXPECT_TRUE(at == 0 || memory[at - 1].end <= memory[at].begin);
        EXPECT_TRUE(at == 0 || memory[at - 1].end < memory[at].begin || memory[at - 1].bytes != memory[at].bytes);
        EXPECT_EQ(*std::min_element(memory[at].bytes->begin(), memory[at].bytes->end()), 0);
      }
    }
  });
}

/// Nodes with one strategy of no bytes and one of `bytes` each, at one time.
StrategyProblem two_sizes(std::initializer_list<Bytes> bytes, Bytes limit) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{2, 0}, {1, 0}}}};
  for (const Bytes size : bytes) {
    const UsageTableId usage = problem.usage_tables.push_back({{0, size}});
    problem.nodes.push_back({StrategyTableId(0), {{usage, 0, 1}}});
  }
  problem.memory_limits = {limit};
  return problem;
}

TEST(ReductionMemoryTest, LimitsThatBindMustLeaveRoomForSums) {
  constexpr Bytes kHuge = Bytes{1} << 61;
  ReductionGraph small = graph_of(two_sizes({kHuge, kHuge - 1}, 2 * kHuge - 2));
  simplify_memory(small);  // together less than 2^62
  EXPECT_EQ(small.memory_limits(), std::vector<Bytes>{2 * kHuge - 2});
  ReductionGraph large = graph_of(two_sizes({kHuge, kHuge - 1, kHuge}, 2 * kHuge));
  EXPECT_THROW(simplify_memory(large), InputError);
}

TEST(ReductionMemoryTest, HugeMultiplesAreCountedInALargerUnit) {
  constexpr Bytes kHuge = Bytes{1} << 61;
  ReductionGraph graph = graph_of(two_sizes({kHuge, kHuge, kHuge}, 2 * kHuge + 5));
  simplify_memory(graph);
  EXPECT_EQ(graph.memory_limits(), std::vector<Bytes>{2});
  EXPECT_EQ(*graph.node(0).memory[0].bytes, (std::vector<Bytes>{0, 1}));
}

TEST(ReductionMemoryTest, BytesUpTo64BitsAreExact) {
  constexpr Bytes kHuge = Bytes{1} << 62;
  StrategyProblem problem = two_sizes({kHuge, kHuge}, std::numeric_limits<Bytes>::max());
  const PlanResult result = make_auto_search()->search(problem, {});
  EXPECT_EQ(result.status, PlanStatus::kOptimal);
  EXPECT_EQ(result.cost, 3);  // one of the two is one byte too many
}

TEST(ReductionMemoryTest, MemoryThatChangedIsTidiedAgain) {
  StrategyProblem problem = two_sizes({6, 5, 4}, 9);
  problem.usage_tables[UsageTableId(0)].bytes[0] = 2;
  ReductionGraph graph = graph_of(problem);
  simplify_memory(graph);
  EXPECT_EQ(graph.memory_limits(), std::vector<Bytes>{7});
  graph.mark_for_removal(0, 0);
  graph.settle();
  tidy_memory(graph);
  EXPECT_EQ(graph.memory_limits(), std::vector<Bytes>{3});  // the 4 above the least are always taken
  tidy_memory(graph);
  EXPECT_EQ(graph.memory_limits(), std::vector<Bytes>{3});
}

}  // namespace
}  // namespace shardplan
