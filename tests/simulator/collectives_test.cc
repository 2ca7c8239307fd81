// Redistributions executed on simulated devices: the effect of a plan's steps on real buffers, compared with the target
// layout.

#include "simulator/execute/collectives.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "layouts/redistribution/redistribution_planner.h"
#include "layouts/reshape.h"
#include "tests/layouts/all_layouts.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

constexpr double kTolerance = 1e-9;

std::vector<double> random_values(const Shape& shape, std::uint64_t seed) {
  const std::int64_t count = num_elements(shape);
  std::vector<double> values;
  Random random(seed);
  for (std::int64_t i = 0; i < count; ++i) values.push_back(random.unit() * 20 - 10);
  return values;
}

::testing::AssertionResult executes(const Redistribution& plan, const DeviceMesh& mesh, const Shape& shape) {
  const std::vector<double> values = random_values(shape, 7);
  const DeviceBuffers result = apply(plan, mesh, shape, scatter(values, shape, plan.from, mesh, 3));
  const double error = largest_error(result, values, shape, plan.to, mesh);
  if (error <= kTolerance) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << mesh.to_string() << ": " << to_string(plan.from, mesh) << " -> "
                                       << to_string(plan.to, mesh) << " is off by " << error;
}

TEST(CollectivesTest, ScatterPutsEachElementWhereTheLayoutSays) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2");
  const DeviceBuffers rows = scatter({0, 1, 2, 3, 4, 5, 6, 7}, {4, 2}, parse_layout("[{y}, {x}]", mesh), mesh);
  EXPECT_EQ(rows, (DeviceBuffers{{0, 2}, {4, 6}, {1, 3}, {5, 7}}));
  const DeviceBuffers strided = scatter({0, 1, 2, 3, 4, 5, 6, 7}, {8}, parse_layout("[(2:{}, 4:{x})]", mesh), mesh);
  EXPECT_EQ(strided, (DeviceBuffers{{0, 1, 4, 5}, {0, 1, 4, 5}, {2, 3, 6, 7}, {2, 3, 6, 7}}));
}

TEST(CollectivesTest, SummandsAreUnequalAndOfBothSigns) {
  const DeviceMesh mesh = DeviceMesh::parse("x=3,y=2");
  const TensorLayout layout = parse_layout("[{y}] unreduced={x}", mesh);
  const std::vector<double> values = random_values({6}, 1);
  const DeviceBuffers buffers = scatter(values, {6}, layout, mesh, 5);
  for (std::size_t i = 0; i < 3; ++i) {
    std::set<double> summands;
    for (std::size_t x = 0; x < 3; ++x) summands.insert(buffers[2 * x][i]);
    EXPECT_EQ(summands.size(), 3u);
    EXPECT_LT(*summands.begin(), 0);
    EXPECT_GT(*summands.rbegin(), 0);
  }
  const std::vector<double> back = gather(buffers, {6}, layout, mesh);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(back[i], values[i], kTolerance);
  EXPECT_EQ(scatter(values, {6}, parse_layout("[{y}] unreduced={x} unreduced_kind=max", mesh), mesh).size(), 6u);
}

TEST(CollectivesTest, GatherUndoesScatter) {
  Random random(11);
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=6,z=4");
  const Shape shape = {24, 36, 2};
  for (int i = 0; i < 50; ++i) {
    const TensorLayout layout = random_layout(mesh, shape, random, true, true);
    const std::vector<double> values = random_values(shape, 2);
    const DeviceBuffers buffers = scatter(values, shape, layout, mesh, 9);
    EXPECT_LE(largest_error(buffers, values, shape, layout, mesh), kTolerance) << to_string(layout, mesh);
    const std::vector<double> back = gather(buffers, shape, layout, mesh);
    for (std::size_t j = 0; j < values.size(); ++j) ASSERT_NEAR(back[j], values[j], kTolerance);
  }
}

TEST(CollectivesTest, AWrongElementOnAnyCopyIsSeen) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2");
  const TensorLayout layout = parse_layout("[{x}]", mesh);
  DeviceBuffers buffers = scatter({1, 2, 3, 4}, {4}, layout, mesh);
  buffers[3].edit()[1] += 0.5;
  EXPECT_EQ(largest_error(buffers, {1, 2, 3, 4}, {4}, layout, mesh), 0.5);
  buffers[3].edit()[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(largest_error(buffers, {1, 2, 3, 4}, {4}, layout, mesh)));
  buffers = scatter({1, 2, 3, 4}, {4}, layout, mesh);
  buffers[0].edit()[0] = std::numeric_limits<double>::quiet_NaN();  // what follows is correct
  EXPECT_TRUE(std::isnan(largest_error(buffers, {1, 2, 3, 4}, {4}, layout, mesh)));
}

struct MeshCase {
  const char* mesh;
  std::vector<Shape> shapes;  // local extents of at least 2, even if all devices shard one dimension
};
const MeshCase kMeshCases[] = {
    {"x=2,y=2", {{12}, {8, 12}, {8, 12, 8}}},        {"x=2,y=2,z=2", {{24}, {16, 24}, {16, 24, 16}}},
    {"x=4,y=2", {{24}, {16, 24}, {16, 24, 16}}},     {"x=3,y=2", {{18}, {12, 18}, {12, 18, 12}}},
    {"x=2,y=3,z=2", {{36}, {24, 36}, {24, 36, 24}}},
};
class AllPairsTest : public ::testing::TestWithParam<MeshCase> {};

// All pairs on two axes and of rank 1; every 19th pair of rank 2 and every 129th of rank 3 on three axes. Every plan is
// a chain of steps; each distinct step is executed once on random data, from its stated source layout, and must give
// its stated target layout. The chain itself is checked for each pair. Whole chains are executed for a sample; those of
// all pairs by bench/redistribution_pairs_bench.cc with SHARDPLAN_EXHAUSTIVE=1.
TEST_P(AllPairsTest, ExecutesToTheTarget) {
  const DeviceMesh mesh = DeviceMesh::parse(GetParam().mesh);
  for (const Shape& shape : GetParam().shapes) {
    const std::vector<TensorLayout> layouts =
        all_layouts(mesh, shape, whole_axes(mesh), {Reduction::kSum, Reduction::kMax});
    RedistributionPlanner planner(mesh, even_costs(mesh.axes().size()));
    const std::vector<double> values = random_values(shape, 7);
    std::set<std::string> executed;
    std::size_t pair = 0;
    const std::size_t skip = layouts.size() < 100 ? 1 : shape.size() == 2 ? 19 : 129;
    const std::size_t stride = skip * (1 + layouts.size() * layouts.size() / (50 * skip));
    for (const TensorLayout& from : layouts) {
      for (const TensorLayout& to : layouts) {
        if (pair % skip != 0) {
          ++pair;
          continue;
        }
        const Redistribution& plan = planner.plan(from, to, shape, 4);
        const TensorLayout* at = &plan.from;
        for (const CollectiveStep& step : plan.steps) {
          ASSERT_EQ(step.before, *at);
          at = &step.after;
          const std::string name = fmt::format("{} {} {} {}", to_string(step.kind), mesh.to_string(step.axes),
                                               to_string(step.before, mesh), to_string(step.after, mesh));
          if (!executed.insert(name).second) continue;
          const DeviceBuffers result = apply(step, mesh, shape, scatter(values, shape, step.before, mesh, 3));
          ASSERT_LE(largest_error(result, values, shape, step.after, mesh), kTolerance) << name;
        }
        ASSERT_EQ(*at, to);
        if (pair++ % stride == 0) {
          ASSERT_TRUE(executes(plan, mesh, shape));
        }
      }
    }
    fmt::print("{} rank {}: {} layouts, {} pairs, {} different steps\n", mesh.to_string(), shape.size(), layouts.size(),
               (pair + skip - 1) / skip, executed.size());
  }
}
INSTANTIATE_TEST_SUITE_P(Meshes, AllPairsTest, ::testing::ValuesIn(kMeshCases));

struct RandomCase {
  const char* mesh;
  Shape shape;
  bool with_sub_axes;
  bool with_parts;
};
const RandomCase kRandomCases[] = {
    {"a=2,b=2,c=2,d=2", {32, 48, 16}, false, false},
    {"a=2,b=3,c=2,d=2", {48, 24, 48}, false, false},
    {"a=4,b=2,c=2,d=2", {64, 32}, true, false},
    {"a=6,b=4", {48, 72}, true, false},
    {"a=12,b=2", {48, 24}, true, true},
    {"a=8,b=4", {64, 64}, true, true},
    {"a=2,b=2,c=2,d=2,e=2,f=2", {64, 8, 64}, false, true},
};
class RandomPairsTest : public ::testing::TestWithParam<RandomCase> {};

TEST_P(RandomPairsTest, ExecutesToTheTarget) {
  const auto& [text, shape, with_sub_axes, with_parts] = GetParam();
  const DeviceMesh mesh = DeviceMesh::parse(text);
  RedistributionPlanner planner(mesh, even_costs(mesh.axes().size()));
  Random random(17);
  for (int i = 0; i < (is_exhaustive() ? 3000 : 30); ++i) {
    const TensorLayout from = random_layout(mesh, shape, random, with_sub_axes, with_parts);
    const TensorLayout to = random_layout(mesh, shape, random, with_sub_axes, with_parts);
    ASSERT_TRUE(executes(planner.plan(from, to, shape, 4), mesh, shape));
  }
}
INSTANTIATE_TEST_SUITE_P(Meshes, RandomPairsTest, ::testing::ValuesIn(kRandomCases));

// A device's shard is the same sequence of numbers in the tensor's shape, in the flattened one and, at the end, in the
// other shape.
TEST(CollectivesTest, RedistributesAcrossReshapes) {
  const Shape shapes[] = {{24, 12}, {12, 24}, {288}, {2, 12, 3, 4}, {6, 1, 48}, {9, 32}};
  Random random(53);
  for (const char* text : {"a=2,b=4", "a=4,b=3,c=2"}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    RedistributionPlanner planner(mesh, even_costs(mesh.axes().size()));
    for (int i = 0; i < (is_exhaustive() ? 2000 : 120); ++i) {
      const Shape& from_shape = shapes[random.below(6)];
      const Shape& to_shape = shapes[random.below(6)];
      const TensorLayout from = random_layout(mesh, from_shape, random, true, true);
      const TensorLayout to = random_layout(mesh, to_shape, random, true, true);
      const std::vector<double> values = random_values(from_shape, 11);
      const ReshapeEnds ends = flatten_ends(from, from_shape, to, to_shape);
      const Redistribution& plan = planner.plan(ends.from, ends.to, ends.shape, 4);
      const DeviceBuffers result = apply(plan, mesh, ends.shape, scatter(values, from_shape, from, mesh));
      ASSERT_LE(largest_error(result, values, to_shape, to, mesh), kTolerance)
          << to_string(from, mesh) << " -> " << to_string(to, mesh);
    }
  }
}

TEST(CollectivesTest, RunsOnAThousandDevices) {
  const DeviceMesh mesh = DeviceMesh::parse("node=128,nvlink=8");
  RedistributionPlanner planner(mesh, even_costs(2));
  const Shape shape = {2048, 16};
  const TensorLayout from = parse_layout("[{node}, {nvlink}]", mesh);
  const TensorLayout to = parse_layout("[{nvlink, node}, {}]", mesh);
  EXPECT_TRUE(executes(planner.plan(from, to, shape, 4), mesh, shape));
}

}  // namespace
}  // namespace shardplan
