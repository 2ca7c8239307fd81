#include "layouts/redistribution/search/shortest_paths.h"

#include <gtest/gtest.h>

#include "layouts/redistribution/search/common_refinement.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

struct LedCase {
  const char* mesh;
  Shape shape;
  std::vector<Reduction> reductions;
  std::size_t stride;  // of the targets
};
const LedCase kLed[] = {
    {"x=2,y=2", {8, 8}, {Reduction::kSum, Reduction::kMax}, 1},
    {"x=4,y=2", {16, 24}, {Reduction::kSum}, 17},
    {"x=3,y=2", {12, 18}, {Reduction::kSum}, 5},
    {"x=2,y=3,z=2", {24, 12}, {}, 17},
};

TEST(ShortestPathsTest, RemainingCostLeadsToTheSamePaths) {
  for (const CostCase& cost : cost_cases()) {
    for (const auto& [text, shape, reductions, stride] : kLed) {
      const DeviceMesh mesh = DeviceMesh::parse(text);
      const std::vector<TensorLayout> layouts = all_layouts(mesh, shape, whole_axes(mesh), reductions);
      std::size_t pair = 0;
      for (const TensorLayout& from : layouts) {
        for (const TensorLayout& to : layouts) {
          if (pair++ % (stride * 5) != 0) continue;
          const std::string name = to_string(from, mesh) + " -> " + to_string(to, mesh);
          RedistributionGraph graph(common_spaces(from, to, mesh, shape, Refinement::kFull), shape);
          EdgeCosts costs(graph, *cost.costs, 4096);
          const std::uint32_t source = *graph.find(from, shape);
          const std::uint32_t target = *graph.find(to, shape);
          PathBound bound;
          bound.least_shards = std::min(num_shards(from), num_shards(to));
          ShortestPaths plain(graph, costs, source, bound);
          ShortestPaths led(graph, costs, source, bound, target);
          const std::optional<Picoseconds> time = plain.time(target);
          ASSERT_EQ(led.time(target), time) << name;
          if (!time) continue;
          const RemainingCost remaining(graph, costs, target, bound.least_shards);
          Picoseconds gone = 0;
          const auto path = plain.path(target);
          const auto led_path = led.path(target);
          ASSERT_EQ(path.size(), led_path.size()) << name;
          for (std::size_t i = 0; i < path.size(); ++i) {
            ASSERT_EQ(path[i].from, led_path[i].from) << name;
            ASSERT_EQ(path[i].edge.target, led_path[i].edge.target) << name;
            ASSERT_EQ(path[i].edge.edge_class, led_path[i].edge.edge_class) << name;
            ASSERT_LE(gone + remaining.of(path[i].from), *time) << name;
            gone += costs[path[i].edge].time;
          }
          ASSERT_EQ(remaining.of(target), 0) << name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
