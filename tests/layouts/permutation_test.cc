#include "layouts/redistribution/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

CollectiveStep permute(const TensorLayout& before, const TensorLayout& after, const std::vector<AxisRef>& axes) {
  CollectiveStep step;
  step.kind = CollectiveKind::kCollectivePermute;
  step.axes = axes;
  step.before = before;
  step.after = after;
  return step;
}

struct PermuteCase {
  const char* before;
  const char* after;
  std::vector<std::int64_t> sources;
};
/// On x=2, y=2 the points are 00, 01, 10, 11.
const PermuteCase kPermutes[] = {
    {"[{x, y}]", "[{y, x}]", {0, 2, 1, 3}},
    {"[{x}]", "[{y}]", {0, 2, 1, 3}},  // 0 and 3 already hold theirs
    {"[{x, y}]", "[{x, y}]", {0, 1, 2, 3}},
};

TEST(PermutationTest, MovesWhatHasToMove) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=2");
  for (const PermuteCase& c : kPermutes) {
    const CollectiveStep step = permute(parse_layout(c.before, mesh), parse_layout(c.after, mesh), whole_axes(mesh));
    EXPECT_EQ(permute_sources(step, mesh), c.sources) << c.before << " to " << c.after;
  }
}

/// Each point receives its shard from one point of its group, which sends to no other; a point that already holds it
/// keeps it.
TEST(PermutationTest, EveryPointReceivesItsShardFromOneThatSendsToNoOther) {
  Random random(3);
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=4, z=3");
  const Shape shape{24, 24};
  int moved = 0;
  for (int i = 0; i < 300; ++i) {
    const TensorLayout before = random_layout(mesh, shape, random, false, false);
    // The same pieces by other axes of equal size, as after a permutation of the mesh.
    TensorLayout after = before;
    for (DimensionLayout& dimension : after.dimensions) {
      std::vector<AxisRef>& axes = dimension.parts[0].axes;
      for (std::size_t k = axes.size(); k > 1; --k) std::swap(axes[k - 1], axes[random.below(k)]);
    }
    if (!check_layout(after, mesh, shape).empty()) continue;
    SCOPED_TRACE(to_string(before, mesh) + " to " + to_string(after, mesh));
    const std::vector<std::int64_t> sources = permute_sources(permute(before, after, whole_axes(mesh)), mesh);
    std::set<std::int64_t> givers(sources.begin(), sources.end());
    EXPECT_EQ(static_cast<std::int64_t>(givers.size()), mesh.num_devices());
    for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
      const std::int64_t source = sources[static_cast<std::size_t>(point)];
      EXPECT_EQ(held_indices(before, mesh, shape, source), held_indices(after, mesh, shape, point));
      EXPECT_EQ(mesh.coordinate(source, before.partial), mesh.coordinate(point, after.partial));
      const bool holds_it = held_indices(before, mesh, shape, point) == held_indices(after, mesh, shape, point);
      EXPECT_EQ(source == point, holds_it) << "point " << point;
      if (!holds_it) ++moved;
    }
  }
  EXPECT_GT(moved, 100);
}

}  // namespace
}  // namespace shardplan
