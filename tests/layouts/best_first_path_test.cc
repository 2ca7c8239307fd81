#include "layouts/redistribution/search/best_first_path.h"

#include <gtest/gtest.h>

#include "layouts/redistribution/search/common_refinement.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

// There is a path whenever Dijkstra's algorithm finds one; it connects the ends, is within the bound, and is no cheaper
// than the cheapest.
TEST(BestFirstPathTest, FindsAPathWhereThereIsOne) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const Shape shape = {8, 24};
  const std::shared_ptr<const CollectiveCosts> collective_costs = cost_cases()[1].costs;
  constexpr std::uint64_t kSeed = 31;
  Random random(kSeed);
  std::size_t none = 0, dearer = 0;
  for (int i = 0; i < 60; ++i) {
    const TensorLayout from = random_layout(mesh, shape, random, true, true);
    const TensorLayout to = random_layout(mesh, shape, random, true, true);
    const std::string name = to_string(from, mesh) + " -> " + to_string(to, mesh);
    RedistributionGraph graph(common_spaces(from, to, mesh, shape, Refinement::kPrime), shape);
    EdgeCosts costs(graph, *collective_costs, 4096);
    const std::uint32_t source = *graph.find(from, shape);
    const std::uint32_t target = *graph.find(to, shape);
    for (const std::int64_t least_shards : {std::min(num_shards(from), num_shards(to)), std::int64_t{8}}) {
      PathBound bound;
      bound.least_shards = least_shards;
      const bool ends_keep_it = std::min(num_shards(from), num_shards(to)) >= least_shards;
      ShortestPaths shortest(graph, costs, source, bound);
      const std::optional<Picoseconds> least = ends_keep_it ? shortest.time(target) : std::nullopt;
      if (!ends_keep_it) continue;
      const std::optional<Path> path = best_first_path(graph, costs, source, target, bound);
      ASSERT_EQ(path.has_value(), least.has_value()) << name << ", seed " << kSeed;
      if (!path) {
        ++none;
        continue;
      }
      std::uint32_t at = source;
      Picoseconds time = 0;
      for (const PathEdge& step : *path) {
        ASSERT_EQ(step.from, at) << name;
        const auto edges = graph.edges(at);
        EXPECT_TRUE(std::any_of(edges.begin(), edges.end(), [&](const RedistributionEdge& edge) {
          return edge.target == step.edge.target && edge.edge_class == step.edge.edge_class;
        })) << name;
        EXPECT_GE(graph.num_shards(step.edge.target), least_shards) << name;
        time += costs[step.edge].time;
        at = step.edge.target;
      }
      EXPECT_EQ(at, target) << name;
      EXPECT_GE(time, *least) << name;
      dearer += time > *least ? 1 : 0;
    }
  }
  EXPECT_LT(dearer, 60u);
}

TEST(BestFirstPathTest, GivesUpAfterAsManyStatesAsItMay) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const Shape shape = {8, 24};
  const TensorLayout from = parse_layout("[{x}, {y}]", mesh);
  const TensorLayout to = parse_layout("[{y}, {x}]", mesh);
  RedistributionGraph graph(common_spaces(from, to, mesh, shape, Refinement::kPrime), shape);
  const std::shared_ptr<const CollectiveCosts> collective_costs = even_costs(2);
  EdgeCosts costs(graph, *collective_costs, 4096);
  const std::uint32_t source = *graph.find(from, shape);
  const std::uint32_t target = *graph.find(to, shape);
  PathBound bound;
  bound.most_settled = 1;
  EXPECT_FALSE(best_first_path(graph, costs, source, target, bound));
  EXPECT_TRUE(best_first_path(graph, costs, source, source, bound));
  EXPECT_TRUE(best_first_path(graph, costs, source, source, bound)->empty());
  bound.most_settled = 1000;
  EXPECT_TRUE(best_first_path(graph, costs, source, target, bound));
}

TEST(BestFirstPathTest, GivesUpInAGraphWithMoreStatesThanItMay) {
  const DeviceMesh mesh = DeviceMesh::parse("a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2");
  const Shape shape = {16, 16};
  const TensorLayout from = parse_layout("[{a, b, c, d}, {e, f, g, h}]", mesh);
  const TensorLayout to = parse_layout("[{h, g, f, e}, {d, c, b, a}]", mesh);
  const std::shared_ptr<const CollectiveCosts> collective_costs = even_costs(8);
  for (const bool is_limited : {false, true}) {
    RedistributionGraph graph(common_spaces(from, to, mesh, shape, Refinement::kPrime), shape);
    EdgeCosts costs(graph, *collective_costs, 4096);
    if (is_limited) graph.limit_states(100);
    const std::uint32_t source = *graph.find(from, shape);
    const std::uint32_t target = *graph.find(to, shape);
    EXPECT_EQ(best_first_path(graph, costs, source, target, {}).has_value(), !is_limited);
    EXPECT_EQ(ShortestPaths(graph, costs, source, {}, target).time(target).has_value(), !is_limited);
    EXPECT_EQ(graph.has_too_many_states(), is_limited);
    // One state has a permute to each of 8! others.
    EXPECT_EQ(graph.num_states() < 1000, is_limited);
  }
}

}  // namespace
}  // namespace shardplan
