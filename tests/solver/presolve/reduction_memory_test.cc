#include "solver/presolve/reduction_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
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

TEST(ReductionMemoryTest, LimitsThatBindMustLeaveRoomForSums) {
  StrategyProblem problem;
  problem.strategy_tables = {{{{1, 0}, {2, 0}}}};
  constexpr Bytes kHuge = Bytes{1} << 60;
  problem.usage_tables = {{{0, kHuge}}};
  for (int i = 0; i < 4; ++i) problem.nodes.push_back({StrategyTableId(0), {{UsageTableId(0), 0, 1}}});
  problem.memory_limits = {3 * kHuge};
  ReductionGraph graph = graph_of(problem);
  EXPECT_THROW(simplify_memory(graph), InputError);
}

}  // namespace
}  // namespace shardplan
