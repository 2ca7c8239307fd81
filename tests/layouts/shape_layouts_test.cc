#include "layouts/redistribution/search/shape_layouts.h"

#include <gtest/gtest.h>

#include "layouts/uneven.h"
#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

TEST(ShapeLayoutsTest, LayoutsThatPlaceAlikeAreOne) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const Shape shape = {24, 10};
  SearchGraphs graphs(mesh, whole_axes(mesh), true);
  ShapeLayouts layouts(shape, graphs);
  const auto id = [&](const char* text) { return layouts.id(parse_layout(text, mesh)); };
  const ShapeLayouts::Id rows = id("[{y}, {}]");
  EXPECT_EQ(id("[{y:(1)2, y:(2)2}, {}]"), rows);
  EXPECT_EQ(id("[(4:{y}, 6:{}), {}]"), rows);
  EXPECT_NE(id("[{y:(2)2, y:(1)2}, {}]"), rows);
  EXPECT_EQ(layouts.size(), 2u);
  EXPECT_FALSE(layouts[rows].is_uneven);
  const ShapeLayouts::Id uneven = id("[{}, {y}]");  // 3 3 3 1
  EXPECT_TRUE(layouts[uneven].is_uneven);
  const ShapeLayouts::Id parts = id("[(3:{}, 8:{x}), {}]");
  const ShapeLayouts::Id other_axis = id("[(3:{}, 8:{y}), {}]");
  EXPECT_EQ(layouts[other_axis].borders, layouts[parts].borders);
  EXPECT_NE(layouts[rows].borders, layouts[parts].borders);
}

// Compared with canonical forms and queries to each graph.
TEST(ShapeLayoutsTest, RemembersFormsBordersAndStates) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=4");
  const Shape shape = {24, 16};
  constexpr std::uint64_t kSeed = 9;
  Random random(kSeed);
  SearchGraphs graphs(mesh, whole_axes(mesh), true);
  ShapeLayouts layouts(shape, graphs);
  std::vector<TensorLayout> given;
  std::vector<ShapeLayouts::Id> ids;
  for (int i = 0; i < 60; ++i) {
    given.push_back(random_layout(mesh, shape, random, i % 3 == 0, i % 2 == 0));
    ids.push_back(layouts.id(given.back()));
  }
  std::size_t found = 0, missing = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_EQ(layouts[ids[i]].layout, canonical(given[i], mesh, shape));
    for (std::size_t j = 0; j < given.size(); ++j) {
      EXPECT_EQ(ids[i] == ids[j], given[i] == given[j]) << "seed " << kSeed;
      const PartBorders borders[] = {part_borders(given[i], shape), part_borders(given[j], shape)};
      EXPECT_EQ(layouts[ids[i]].borders == layouts[ids[j]].borders, borders[0] == borders[1]) << "seed " << kSeed;
      if (j % 7 != 0) continue;
      const auto shared = layouts.graphs(layouts[ids[i]].borders, layouts[ids[j]].borders);
      const std::vector<SearchGraph*> expected = graphs.graphs_of_pieces(borders[0], borders[1], shape);
      EXPECT_EQ(std::vector<SearchGraph*>(shared.begin(), shared.end()), expected);
      for (SearchGraph* const graph : shared) {
        for (int again = 0; again < 2; ++again) {
          const std::optional<std::uint32_t> state = layouts.state(ids[i], *graph);
          EXPECT_EQ(state, graph->graph.find(given[i], shape));
          if (state) {
            EXPECT_EQ(graph->graph.layout(*state, shape), given[i]);
          }
          ++(state ? found : missing);
        }
      }
    }
  }
  EXPECT_GT(found, 100u);
  EXPECT_GT(missing, 100u);  // with halves of y, which the graphs do not have
}

}  // namespace
}  // namespace shardplan
