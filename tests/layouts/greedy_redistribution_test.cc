// Plans compared with the greedy orders of MindSpore and Shardy.

#include "layouts/redistribution/greedy_redistribution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "layouts/redistribution/redistribution_planner.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/shardy_order.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

/// All maps of device dimensions to n tensor dimensions, on a cube of twos.
std::map<std::size_t, int> greedy_histogram(std::size_t n) {
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < n; ++i) axes.push_back({fmt::format("a{}", i), 2});
  const DeviceMesh mesh(axes);
  const Shape shape(n, 8);
  std::vector<TensorLayout> maps;
  for (const TensorLayout& layout : all_layouts(mesh, shape, whole_axes(mesh), {})) {
    const bool is_map = std::all_of(layout.dimensions.begin(), layout.dimensions.end(),
                                    [](const DimensionLayout& d) { return d.parts[0].axes.size() <= 1; });
    const bool is_whole = std::all_of(layout.dimensions.begin(), layout.dimensions.end(),
                                      [](const DimensionLayout& d) { return d.num_pieces() <= 2; });
    if (is_map && is_whole) maps.push_back(layout);
  }
  const TestCosts costs(0, std::vector<TestCosts::Axis>(n));
  std::map<std::size_t, int> histogram;
  for (const TensorLayout& from : maps) {
    for (const TensorLayout& to : maps) {
      if (from != to) ++histogram[greedy_redistribution(from, to, shape, 4, mesh, costs)->steps.size()];
    }
  }
  return histogram;
}

TEST(GreedyRedistributionTest, HasMindSporesFingerprint) {
  EXPECT_EQ(greedy_histogram(2), (std::map<std::size_t, int>{{1, 20}, {2, 20}, {3, 2}}));
  EXPECT_EQ(greedy_histogram(3), (std::map<std::size_t, int>{{1, 180}, {2, 450}, {3, 444}, {4, 48}}));
}

TEST(GreedyRedistributionTest, IsNeverBetter) {
  struct Case {
    const char* mesh;
    Shape shape;
    std::vector<AxisRef> twos;  // for Shardy's order; empty if the mesh does not consist of twos
  };
  const Case cases[] = {
      {"x=2,y=2", {12, 8, 8}, {{0, 1, 2}, {1, 1, 2}}},
      {"x=2,y=2,z=2", {16, 16}, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}},
      {"x=2,y=2,z=2", {16, 16, 16}, {{0, 1, 2}, {1, 1, 2}, {2, 1, 2}}},
      {"x=4,y=2", {16, 16, 16}, {{0, 1, 2}, {0, 2, 2}, {1, 1, 2}}},
      {"x=3,y=2", {12, 18, 6}, {}},
      {"x=2,y=3,z=2", {24, 36}, {}},
  };
  for (const CostCase& cost : cost_cases()) {
    Wins mindspore;
    Wins shardy;
    for (const auto& [text, shape, twos] : cases) {
      const DeviceMesh mesh = DeviceMesh::parse(text);
      const std::vector<TensorLayout> layouts = all_layouts(mesh, shape, whole_axes(mesh), {});
      RedistributionPlanner bounded(mesh, cost.costs);
      RedistributionPlanner unbounded(mesh, cost.costs, {.bounded_memory = false});
      const Bytes tensor_bytes = num_bytes(shape, 4);
      // Every 83rd pair of the large products; all of them with SHARDPLAN_EXHAUSTIVE=1.
      const std::size_t stride = layouts.size() < 30 || is_exhaustive() ? 1 : 83;
      std::size_t pair = 0;
      for (const TensorLayout& from : layouts) {
        for (const TensorLayout& to : layouts) {
          if (pair++ % stride != 0) continue;
          const std::int64_t bound = std::min(num_shards(from), num_shards(to));
          const auto best = [&](std::int64_t least_shards) {
            return (least_shards >= bound ? bounded : unbounded).time(from, to, shape, 4);
          };
          const Redistribution greedy = *greedy_redistribution(from, to, shape, 4, mesh, *cost.costs);
          std::int64_t least_shards = bound;
          for (const CollectiveStep& step : greedy.steps) least_shards = std::min(least_shards, num_shards(step.after));
          ASSERT_LE(best(least_shards), greedy.time) << to_string(from, mesh) << " -> " << to_string(to, mesh);
          mindspore.add(best(least_shards), greedy.time);
          if (twos.empty()) continue;
          const ShardyOrder order = shardy_order(from, to, twos, tensor_bytes, *cost.costs);
          ASSERT_LE(best(order.least_shards), order.time) << to_string(from, mesh) << " -> " << to_string(to, mesh);
          shardy.add(best(order.least_shards), order.time);
        }
      }
    }
    fmt::print("{}: beats MindSpore's order on {}\n", cost.name, mindspore.text());
    fmt::print("{}: beats Shardy's order on {}\n", cost.name, shardy.text());
  }
}

TEST(GreedyRedistributionTest, IsNeverBetterOnFourAxesWithSubAxes) {
  const DeviceMesh mesh = DeviceMesh::parse("a=4,b=2,c=2,d=4");
  const Shape shape = {64, 128, 64, 2};
  Random random(31);
  for (const CostCase& cost : cost_cases()) {
    Wins wins;
    RedistributionPlanner bounded(mesh, cost.costs);
    RedistributionPlanner unbounded(mesh, cost.costs, {.bounded_memory = false});
    for (int i = 0; i < 40; ++i) {
      TensorLayout ends[2];
      for (TensorLayout& end : ends) {
        end = random_layout(mesh, shape, random, true, false);
        end.partial.clear();
        end.reduction = Reduction::kSum;
      }
      const Redistribution greedy = *greedy_redistribution(ends[0], ends[1], shape, 4, mesh, *cost.costs);
      bool is_within = true;
      for (const CollectiveStep& step : greedy.steps) {
        is_within = is_within && num_shards(step.after) >= std::min(num_shards(ends[0]), num_shards(ends[1]));
      }
      const Picoseconds best = (is_within ? bounded : unbounded).time(ends[0], ends[1], shape, 4);
      ASSERT_LE(best, greedy.time) << to_string(ends[0], mesh) << " -> " << to_string(ends[1], mesh);
      wins.add(best, greedy.time);
    }
    fmt::print("{}, four axes with sub-axes: beats MindSpore's order on {}\n", cost.name, wins.text());
  }
}

}  // namespace
}  // namespace shardplan
