#include "layouts/layout_axes.h"

#include <gtest/gtest.h>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

TEST(LayoutAxesTest, AreThoseOfDimensionsThenThoseOfSums) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=4, z=3");
  const TensorLayout layout = parse_layout("[{y:(1)2}, {x, y:(2)2}] unreduced={z}", mesh);
  const AxisRef x = mesh.whole(0);
  const AxisRef first = {1, 1, 2};
  const AxisRef second = {1, 2, 2};
  const AxisRef z = mesh.whole(2);
  EXPECT_EQ(axes_along(layout.dimensions[1]), (std::vector<AxisRef>{x, second}));
  EXPECT_EQ(cutting_axes(layout), (std::vector<AxisRef>{first, x, second}));
  EXPECT_EQ(axes_of(layout), (std::vector<AxisRef>{first, x, second, z}));
  EXPECT_TRUE(axes_of(TensorLayout::replicated(2)).empty());
}

/// Devices hold the same elements if and only if they have the same coordinates along the axes that shard.
TEST(LayoutAxesTest, WhatCutsDecidesWhatIsHeld) {
  constexpr std::uint64_t kSeed = 43;
  Random random(kSeed);
  const DeviceMesh mesh = DeviceMesh::parse("x=2, y=6");
  const Shape shape = {12, 24};
  for (int i = 0; i < 100; ++i) {
    const TensorLayout layout = random_layout(mesh, shape, random, true, true);
    const std::vector<AxisRef> axes = cutting_axes(layout);
    for (std::int64_t a = 0; a < mesh.num_devices(); ++a) {
      for (std::int64_t b = 0; b < a; ++b) {
        EXPECT_EQ(mesh.coordinate(a, axes) == mesh.coordinate(b, axes),
                  held_indices(layout, mesh, shape, a) == held_indices(layout, mesh, shape, b))
            << to_string(layout, mesh) << ", devices " << a << " and " << b << ", seed " << kSeed;
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
