#include "tests/support/reductions.h"

#include <gtest/gtest.h>

#include "tests/support/problems.h"

namespace shardplan {

std::optional<std::int64_t> cost_in_graph(ReductionGraph& graph, const std::vector<std::uint32_t>& values) {
  std::int64_t sum = graph.constant_cost();
  for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
    const ReductionGraph::Node& node = graph.node(id);
    if (!node.is_alive) continue;
    if (!node.marked.empty() && node.marked[values[id]]) return std::nullopt;
    sum += node.costs[values[id]];
  }
  for (std::size_t id = 0; id < graph.num_edges(); ++id) {
    const ReductionGraph::Edge& edge = graph.edge(id);
    if (!edge.is_alive) continue;
    const std::int64_t cost = edge.table->at(values[edge.nodes[0]], values[edge.nodes[1]]);
    if (cost >= kForbidden) return std::nullopt;
    sum += cost;
  }
  return sum;
}

bool fits_in_graph(ReductionGraph& graph, const std::vector<std::uint32_t>& values) {
  for (std::uint32_t time = 0; time < graph.memory_limits().size(); ++time) {
    Bytes bytes = 0;
    const auto add = [&](const UsageSegment& segment, std::size_t value) {
      if (segment.begin <= time && time < segment.end) bytes += (*segment.bytes)[value];
    };
    for (const UsageSegment& segment : graph.fixed_memory()) add(segment, 0);
    for (std::size_t id = 0; id < graph.num_nodes(); ++id) {
      if (!graph.node(id).is_alive) continue;
      for (const UsageSegment& segment : graph.node(id).memory) add(segment, values[id]);
    }
    if (bytes > graph.memory_limits()[time]) return false;
  }
  return true;
}

void for_each_values(const ReductionGraph& graph, const std::function<void(const std::vector<std::uint32_t>&)>& visit) {
  std::vector<std::uint32_t> values(graph.num_nodes(), 0);
  for (;;) {
    visit(values);
    std::size_t id = 0;
    for (; id < values.size(); ++id) {
      if (!graph.node(id).is_alive) continue;
      if (++values[id] < graph.num_values(id)) break;
      values[id] = 0;
    }
    if (id == values.size()) return;
  }
}

void expect_exact(const StrategyProblem& problem, ReductionGraph& graph) {
  const std::optional<std::int64_t> optimum = brute_force(problem);
  std::optional<std::int64_t> least;
  if (!graph.is_infeasible()) {
    for_each_values(graph, [&](const std::vector<std::uint32_t>& values) {
      const std::optional<std::int64_t> cost = cost_in_graph(graph, values);
      if (!cost || !fits_in_graph(graph, values)) return;
      const Evaluation evaluation = evaluate(problem, graph.expand(values));
      EXPECT_TRUE(evaluation.feasible) << describe(problem);
      EXPECT_EQ(evaluation.value({}), *cost) << describe(problem);
      if (!least || *cost < *least) least = cost;
    });
  }
  EXPECT_EQ(least, optimum) << describe(problem);
}

ReductionGraph graph_of(const StrategyProblem& problem, bool with_memory) {
  ReductionGraph graph(problem, {}, std::nullopt, with_memory, Deadline(0, {}));
  graph.settle();
  return graph;
}

void for_random_graphs(std::uint64_t seeds,
                       const std::function<void(const StrategyProblem& problem, ReductionGraph& graph)>& visit) {
  for (std::uint64_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const StrategyProblem problem = random_problem(random, random_options(random));
    ReductionGraph graph = graph_of(problem);
    if (!graph.is_infeasible()) visit(problem, graph);
  }
}

}  // namespace shardplan
