#include "layouts/redistribution/search/remaining_cost.h"

#include <gtest/gtest.h>

#include "layouts/redistribution/search/common_refinement.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

struct RemainingCase {
  const char* mesh;
  Shape shape;
  const char* from;
  const char* to;
  bool leads;  // false: both ends are sharded by the same pieces, whose exchanges are free in the bound
};
const RemainingCase kRemaining[] = {
    {"x=2,y=4", {8, 24}, "[{x}, {y}]", "[{y}, {x}]", false},
    {"x=2,y=4", {8, 24}, "[{}, {}] unreduced={x, y}", "[{y}, {}] unreduced={x}", true},
    {"x=2,y=4", {8, 8}, "[{y}, {}] unreduced={x} unreduced_kind=max", "[{}, {}]", true},
    {"x=2,y=3", {6, 6}, "[{x, y}, {}]", "[{y, x}, {}]", false},  // two spaces: 2 x 3 and 3 x 2
};

// Never more than the least cost by Bellman and Ford's algorithm over all states, zero at the target, and no step
// reduces it by more than it costs: the requirements of A* for finding the same path as without it.
TEST(RemainingCostTest, IsAConsistentLowerBound) {
  for (const CostCase& cost : cost_cases()) {
    for (const RemainingCase& c : kRemaining) {
      SCOPED_TRACE(std::string(cost.name) + ": " + c.from + " -> " + c.to);
      const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
      const TensorLayout from = canonical(parse_layout(c.from, mesh), mesh, c.shape);
      const TensorLayout to = canonical(parse_layout(c.to, mesh), mesh, c.shape);
      RedistributionGraph graph(common_spaces(from, to, mesh, c.shape, Refinement::kPrime), c.shape);
      EdgeCosts costs(graph, *cost.costs, 4096);
      ASSERT_TRUE(graph.find(from, c.shape));
      const std::uint32_t target = *graph.find(to, c.shape);
      std::vector<std::vector<RedistributionEdge>> edges;
      for (std::uint32_t state = 0; state < graph.num_states(); ++state) {
        const auto leaving = graph.edges(state);
        edges.emplace_back(leaving.begin(), leaving.end());
      }
      const std::int64_t least_shards = std::min(num_shards(from), num_shards(to));
      const auto is_within = [&](std::uint32_t state) { return graph.num_shards(state) >= least_shards; };
      constexpr Picoseconds kFarAway = INT64_MAX / 2;
      std::vector<Picoseconds> least(edges.size(), kFarAway);
      least[target] = 0;
      for (bool changed = true; changed;) {
        changed = false;
        for (std::uint32_t a = 0; a < edges.size(); ++a) {
          if (!is_within(a)) continue;
          for (const RedistributionEdge& edge : edges[a]) {
            if (!is_within(edge.target)) continue;
            const Picoseconds through = costs[edge].time + least[edge.target];
            if (through < least[a]) changed = true, least[a] = through;
          }
        }
      }
      const RemainingCost remaining(graph, costs, target, least_shards);
      EXPECT_EQ(remaining.of(target), 0);
      std::size_t exact = 0;
      for (std::uint32_t a = 0; a < edges.size(); ++a) {
        if (!is_within(a)) continue;
        const std::string name = to_string(graph.layout(a, c.shape), mesh);
        if (least[a] < kFarAway) {
          ASSERT_LE(remaining.of(a), least[a]) << name;
        }
        exact += least[a] > 0 && remaining.of(a) == least[a] ? 1 : 0;
        for (const RedistributionEdge& edge : edges[a]) {
          if (!is_within(edge.target) || remaining.of(edge.target) == RemainingCost::kUnreachable) continue;
          ASSERT_LE(remaining.of(a), costs[edge].time + remaining.of(edge.target)) << name;
        }
      }
      EXPECT_EQ(exact > 0, c.leads);
    }
  }
}

}  // namespace
}  // namespace shardplan
