// Redistributions of tensors whose dimensions the mesh does not divide, executed with NaN as padding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "base/random.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "layouts/redistribution/uneven_redistribution.h"
#include "layouts/uneven.h"
#include "simulator/execute/collectives.h"
#include "simulator/execute/reach.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {
namespace {

constexpr double kTolerance = 1e-9;

/// Pieces of the mesh at random: in a dimension, partial or nowhere.
TensorLayout random_uneven_layout(const DeviceMesh& mesh, const Shape& shape, Random& random, bool with_max = true) {
  TensorLayout layout = TensorLayout::replicated(shape.size());
  layout.reduction = with_max && random.below(3) == 0 ? Reduction::kMax : Reduction::kSum;
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const AxisRef whole = mesh.whole(axis);
    if (whole.size == 4 && random.below(2) == 0) {
      pieces.push_back({whole.axis, 1, 2});
      pieces.push_back({whole.axis, 2, 2});
    } else {
      pieces.push_back(whole);
    }
  }
  while (!pieces.empty()) {
    const std::size_t i = random.below(pieces.size());
    const AxisRef piece = pieces[i];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i));
    const std::size_t where = random.below(shape.size() + 2);
    if (where > shape.size()) continue;
    TensorLayout next = layout;
    if (where == shape.size()) {
      next.partial.push_back(piece);
    } else {
      next.dimensions[where].parts[0].axes.push_back(piece);
    }
    if (check_uneven_layout(next, mesh, shape).empty()) layout = next;
  }
  return canonical(layout, mesh, shape);
}

std::vector<AxisRef> primes(const DeviceMesh& mesh) {
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const AxisRef whole = mesh.whole(axis);
    if (whole.size == 4) {
      pieces.push_back({whole.axis, 1, 2});
      pieces.push_back({whole.axis, 2, 2});
    } else {
      pieces.push_back(whole);
    }
  }
  return pieces;
}

std::int64_t padding(const DeviceBuffers& buffers) {
  std::int64_t count = 0;
  for (const std::vector<double>& buffer : buffers) {
    for (const double value : buffer) count += std::isnan(value) ? 1 : 0;
  }
  return count;
}

std::int64_t expected_padding(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  std::int64_t count = 0;
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    std::int64_t held = 1;
    for (const auto& positions : held_indices(layout, mesh, shape, point)) {
      held *= static_cast<std::int64_t>(positions.size());
    }
    count += num_elements(local_shape(layout, shape)) - held;
  }
  return count;
}

struct UnevenCase {
  const char* mesh;
  Shape shape;
};
const UnevenCase kUnevenCases[] = {
    {"x=2,y=4", {10, 7}},   {"x=2,y=4", {15, 13}},     {"x=3,y=2", {11, 5, 4}}, {"x=8", {29, 17}},
    {"x=2,y=2,z=2", {197}}, {"x=2,y=3,z=2", {25, 14}}, {"x=4,y=4", {50, 31}},
};
class UnevenCollectives : public testing::TestWithParam<UnevenCase> {};

TEST_P(UnevenCollectives, RandomPairsEndWhereTheyShould) {
  const auto& [text, shape] = GetParam();
  const DeviceMesh mesh = DeviceMesh::parse(text);
  RedistributionPlanner planner(mesh, even_costs(mesh.axes().size()));
  // Without the bound, time is a metric as far as detours shard as the end layouts do.
  const auto unbounded = std::make_unique<RedistributionPlanner>(mesh, even_costs(mesh.axes().size()),
                                                                 RedistributionOptions{.bounded_memory = false});
  Random random(23);
  std::vector<double> values;
  for (std::int64_t i = 0; i < num_elements(shape); ++i) values.push_back(random.unit() * 20 - 10);
  int uneven = 0;
  for (int i = 0; i < (is_exhaustive() ? 2000 : 60); ++i) {
    const TensorLayout from = random_uneven_layout(mesh, shape, random);
    const TensorLayout to = random_uneven_layout(mesh, shape, random);
    const TensorLayout through = random_uneven_layout(mesh, shape, random);
    uneven += is_uneven(from, shape) || is_uneven(to, shape) ? 1 : 0;
    const std::string name = fmt::format("{} -> {}", to_string(from, mesh), to_string(to, mesh));
    const Redistribution plan = planner.plan(from, to, shape, 4);
    EXPECT_EQ(planner.time(from, to, shape, 4), plan.time) << name;
    DeviceBuffers buffers = scatter(values, shape, from, mesh, 3);
    TensorLayout at = from;
    for (const CollectiveStep& step : plan.steps) {
      ASSERT_EQ(step.before, at) << name;
      ASSERT_EQ(check_uneven_layout(step.after, mesh, shape), "") << name;
      ASSERT_EQ(check_reach(step, mesh, shape), "") << name << ": " << to_string(step.kind);
      EXPECT_EQ(step.local_shape, local_shape(step.after, shape));
      buffers = apply(step, mesh, shape, buffers);
      at = step.after;
      ASSERT_LE(largest_error(buffers, values, shape, at, mesh), kTolerance) << name << ": " << to_string(step.kind);
      EXPECT_EQ(padding(buffers), expected_padding(at, mesh, shape)) << name << ": " << to_string(step.kind);
    }
    ASSERT_EQ(at, to) << name;
    RedistributionPlanner& free = *unbounded;
    EXPECT_LE(free.time(from, to, shape, 4), plan.time) << name;
    // Between even layouts the path is even.
    if (!is_uneven(from, shape) && !is_uneven(to, shape)) continue;
    EXPECT_LE(free.time(from, to, shape, 4), free.time(from, through, shape, 4) + free.time(through, to, shape, 4))
        << name << " through " << to_string(through, mesh);
  }
  EXPECT_GT(uneven, 10);
}

INSTANTIATE_TEST_SUITE_P(Shapes, UnevenCollectives, testing::ValuesIn(kUnevenCases));

// Random shapes too: the layout after every step, the triangle inequality, and the bound on memory.
TEST(UnevenCollectivesTest, RandomShapesKeepEveryProperty) {
  constexpr std::uint64_t kSeed = 41;
  std::cout << "seed " << kSeed << "\n";
  Random random(kSeed);
  const auto num_cuts = [](const TensorLayout& layout) {
    std::int64_t cuts = 1;
    for (const DimensionLayout& dimension : layout.dimensions) cuts *= dimension.num_pieces();
    return cuts;
  };
  int uneven = 0, beyond = 0;
  for (const char* text : {"x=8", "x=2,y=4", "x=3,y=2", "x=5,y=3"}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    RedistributionPlanner bounded(mesh, even_costs(mesh.axes().size()));
    RedistributionPlanner free(mesh, even_costs(mesh.axes().size()), {.bounded_memory = false});
    for (int i = 0; i < (is_exhaustive() ? 1000 : 30); ++i) {
      Shape shape;
      for (std::size_t rank = 1 + random.below(3); shape.size() < rank;) {
        shape.push_back(3 + static_cast<std::int64_t>(random.below(rank == 3 ? 18 : 40)));
      }
      const TensorLayout from = random_uneven_layout(mesh, shape, random);
      const TensorLayout to = random_uneven_layout(mesh, shape, random);
      const TensorLayout through = random_uneven_layout(mesh, shape, random);
      const std::string name =
          fmt::format("{} of {}: {} -> {}", text, to_string(shape), to_string(from, mesh), to_string(to, mesh));
      std::vector<double> values;
      for (std::int64_t e = 0; e < num_elements(shape); ++e) values.push_back(random.unit() * 20 - 10);
      const Redistribution plan = bounded.plan(from, to, shape, 4);
      DeviceBuffers buffers = scatter(values, shape, from, mesh, 3);
      for (const CollectiveStep& step : plan.steps) {
        ASSERT_EQ(check_reach(step, mesh, shape), "") << name;
        buffers = apply(step, mesh, shape, buffers);
        ASSERT_LE(largest_error(buffers, values, shape, step.after, mesh), kTolerance) << name;
        EXPECT_EQ(padding(buffers), expected_padding(step.after, mesh, shape)) << name;
      }
      // The bound counts pieces: an intermediate shard may contain more padding than those at the ends.
      const std::int64_t least = std::min(num_cuts(from), num_cuts(to));
      const bool keeps =
          std::ranges::all_of(plan.steps, [&](const CollectiveStep& step) { return num_cuts(step.after) >= least; });
      beyond += keeps ? 0 : 1;
      if (!is_uneven(from, shape) && !is_uneven(to, shape)) continue;
      ++uneven;
      EXPECT_LE(free.time(from, to, shape, 4), plan.time) << name;
      EXPECT_LE(free.time(from, to, shape, 4), free.time(from, through, shape, 4) + free.time(through, to, shape, 4))
          << name << " through " << to_string(through, mesh);
      EXPECT_LE(free.time(from, to, shape, 2), free.time(from, to, shape, 4)) << name << ", of half the bytes";
    }
  }
  EXPECT_GT(uneven, 40);
  EXPECT_LE(beyond, 6) << "where no way keeps the bound";
  std::cout << uneven << " uneven pairs, " << beyond << " beyond the bound\n";
}

// What models' cost matrices consist of: all pairs at once, including dimensions that consist of parts.
TEST(UnevenCollectivesTest, TimesOfAllPairsAreThoseOfThePlans) {
  for (const char* text : {"x=2,y=4", "x=2,y=2,z=2", "x=3,y=2"}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    const Shape shape = {13, 7, 24};
    for (const bool bounded : {true, false}) {
      for (const CostCase& cost : cost_cases()) {
        RedistributionPlanner all(mesh, cost.costs, {.bounded_memory = bounded, .pieces = primes(mesh)});
        RedistributionPlanner single(mesh, cost.costs, {.bounded_memory = bounded, .pieces = primes(mesh)});
        Random random(11);
        std::vector<TensorLayout> layouts;
        for (int i = 0; i < 12; ++i) {
          TensorLayout layout = random_uneven_layout(mesh, shape, random);
          if (i % 3 == 0) {
            layout.dimensions[2].parts = {{2, {}}, {12, layout.dimensions[2].parts[0].axes}};
            if (!check_uneven_layout(layout, mesh, shape).empty()) continue;
          }
          layouts.push_back(canonical(layout, mesh, shape));
        }
        std::vector<const TensorLayout*> ends;
        for (const TensorLayout& layout : layouts) ends.push_back(&layout);
        const std::vector<Picoseconds> times = all.times(ends, ends, shape, 4);
        for (std::size_t i = 0; i < ends.size(); ++i) {
          for (std::size_t j = 0; j < ends.size(); ++j) {
            EXPECT_EQ(times[i * ends.size() + j], single.plan(*ends[i], *ends[j], shape, 4).time)
                << text << " " << cost.name << ": " << to_string(*ends[i], mesh) << " -> " << to_string(*ends[j], mesh);
          }
        }
      }
    }
  }
}

TEST(UnevenCollectivesTest, TenRowsInFourAreGatheredWhole) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=2");
  RedistributionPlanner planner(mesh, even_costs(2));
  const auto kinds = [&](const char* from, const char* to, const Shape& shape) {
    std::string text;
    const Redistribution plan = planner.plan(parse_layout(from, mesh), parse_layout(to, mesh), shape, 4);
    for (const CollectiveStep& step : plan.steps) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(step.kind), mesh.to_string(step.axes));
    }
    return text;
  };
  // 3 3 3 1 are not halves of 5 5; 2 2 2 1 are halves of 4 3.
  EXPECT_EQ(kinds("[{x, y}]", "[{x}]", {10}), "all_gather {x, y}, slice {x}");
  EXPECT_EQ(kinds("[{x, y}]", "[{x}]", {7}), "all_gather {y}");
  EXPECT_EQ(kinds("[{}]", "[{x, y}]", {10}), "slice {x, y}");
  EXPECT_EQ(kinds("[{}] unreduced={x, y}", "[{x, y}]", {10}), "reduce_scatter {x, y}");
  EXPECT_EQ(kinds("[{x}, {}]", "[{}, {x}]", {5, 3}), "all_to_all {x}");
  EXPECT_EQ(kinds("[{x}, {y}]", "[{y}, {x}]", {5, 3}), "collective_permute {x, y}");
}

// For sizes that the mesh divides both searches give the same answer, if the other one gets the same pieces.
TEST(UnevenCollectivesTest, OnEvenSizesTheSearchAgreesWithTheOther) {
  for (const char* text : {"x=2,y=2", "x=2,y=4", "x=3,y=2"}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    const Shape shape = {48, 24};
    for (const bool bounded : {true, false}) {
      for (const CostCase& cost : cost_cases()) {
        RedistributionPlanner planner(mesh, cost.costs, {.bounded_memory = bounded, .pieces = primes(mesh)});
        Random random(5);
        for (int i = 0; i < 60; ++i) {
          const TensorLayout from = random_uneven_layout(mesh, shape, random, false);
          const TensorLayout to = random_uneven_layout(mesh, shape, random, false);
          const Redistribution plan = uneven_redistribution(from, to, shape, 4, mesh, *cost.costs, bounded);
          EXPECT_EQ(plan.time, planner.time(from, to, shape, 4))
              << text << " " << cost.name << ": " << to_string(from, mesh) << " -> " << to_string(to, mesh);
        }
      }
    }
  }
}

TEST(UnevenCollectivesTest, CostsAreThoseOfTheBuffers) {
  const DeviceMesh mesh = DeviceMesh::parse("x=4");
  RedistributionPlanner planner(mesh, even_costs(1));
  const Redistribution gathered = planner.plan(parse_layout("[{x}]", mesh), parse_layout("[{}]", mesh), {10}, 4);
  const Redistribution padded = planner.plan(parse_layout("[{x}]", mesh), parse_layout("[{}]", mesh), {12}, 4);
  EXPECT_EQ(gathered.time, padded.time);
  EXPECT_EQ(gathered.sent, padded.sent);
  EXPECT_EQ(gathered.peak, padded.peak);
}

// A collective that passes padding on would be detected: here a gather that does not know where pieces end.
TEST(UnevenCollectivesTest, ALeftOutTrimIsSeen) {
  const DeviceMesh mesh = DeviceMesh::parse("x=4");
  const Shape shape = {10};
  const std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const DeviceBuffers pieces = scatter(values, shape, parse_layout("[{x}]", mesh), mesh);
  std::vector<double> row;
  for (const std::vector<double>& piece : pieces) row.insert(row.end(), piece.begin(), piece.end());
  EXPECT_EQ(row.size(), 12u);
  const std::vector<double> first(row.begin(), row.begin() + 10);
  const std::vector<double> last(row.end() - 10, row.end());
  const TensorLayout whole = TensorLayout::replicated(1);
  EXPECT_LE(largest_error(DeviceBuffers(4, first), values, shape, whole, mesh), 0);
  EXPECT_FALSE(largest_error(DeviceBuffers(4, last), values, shape, whole, mesh) <= 1);
}

}  // namespace
}  // namespace shardplan
