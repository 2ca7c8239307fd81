#include "layouts/refined_axes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "layouts/layout_axes.h"
#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

std::string names(const RefinedAxes& refined) {
  std::string text;
  for (const RefinedAxes::Axis& axis : refined.axes()) text += fmt::format("{}={} ", axis.name, axis.size);
  return text;
}

TEST(RefinedAxesTest, CutsWhereLayoutsCut) {
  const DeviceMesh mesh = DeviceMesh::parse("pcie=2, hccs=4");
  const auto refs = [&](const char* layout) { return axes_of(parse_layout(layout, mesh)); };
  EXPECT_EQ(names(RefinedAxes(mesh, {})), "pcie=2 hccs=4 ");
  EXPECT_EQ(names(RefinedAxes(mesh, refs("[{hccs}]"))), "pcie=2 hccs=4 ");
  const RefinedAxes refined(mesh, refs("[{hccs:(2)2}] unreduced={pcie}"));
  EXPECT_EQ(names(refined), "pcie=2 hccs_0=2 hccs_1=2 ");
  EXPECT_EQ(refined.find(mesh.whole(1)), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(refined.find({1, 2, 2}), (std::vector<std::size_t>{2}));
  EXPECT_EQ(refined.find({1, 1, 2}), (std::vector<std::size_t>{1}));
  EXPECT_EQ(RefinedAxes(mesh, {}).find({1, 1, 2}), std::nullopt) << "nobody asked for that cut";
}

/// Six positions as 2 x 3 differ from 3 x 2: the later one is left out.
TEST(RefinedAxesTest, LeavesOutCutsThatDoNotNest) {
  const DeviceMesh mesh = DeviceMesh::parse("x=6");
  const RefinedAxes refined(mesh, {{0, 1, 2}, {0, 1, 3}});
  EXPECT_EQ(names(refined), "x_0=2 x_1=3 ");
  EXPECT_EQ(refined.find({0, 1, 3}), std::nullopt);
}

/// Every device has the same coordinates along a layout's axes and along the whole axes that represent them.
TEST(RefinedAxesTest, PlacesDevicesAsTheSubAxesDo) {
  Random random(7);
  const DeviceMesh mesh = DeviceMesh::parse("x=8, y=12");
  for (int i = 0; i < 200; ++i) {
    const TensorLayout layout = random_layout(mesh, {96, 96}, random, true, true);
    SCOPED_TRACE(fmt::format("layout {}: {}", i, to_string(layout, mesh)));
    const RefinedAxes refined(mesh, axes_of(layout));
    std::vector<MeshAxis> axes;
    for (const RefinedAxes::Axis& axis : refined.axes()) axes.push_back({axis.name, axis.size});
    const DeviceMesh finer(axes);
    ASSERT_EQ(finer.num_devices(), mesh.num_devices());
    for (const AxisRef& ref : axes_of(layout)) {
      const auto found = refined.find(ref);
      if (!found) continue;  // the sub-axes of one layout may not nest either
      std::vector<AxisRef> whole;
      for (const std::size_t axis : *found) whole.push_back(finer.whole(axis));
      for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
        ASSERT_EQ(finer.coordinate(point, whole), mesh.coordinate(point, ref)) << "point " << point;
      }
    }
  }
}

}  // namespace
}  // namespace shardplan
