#include "layouts/tensor_layout.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

const DeviceMesh kMesh = DeviceMesh::parse("x=2,y=4");

struct LocalShapeCase {
  const char* name;
  Shape shape;
  const char* layout;
  Shape local;
};
const LocalShapeCase kLocalShapes[] = {
    {"rows_over_x", {8, 6}, "[{x}, {}]", {4, 6}},
    {"rows_over_x_then_y", {8, 6}, "[{x, y}, {}]", {1, 6}},
    {"sub_axes", {8, 6}, "[{y:(2)2}, {x}]", {4, 3}},
    {"partial_keeps_the_shape", {8, 6}, "[{}, {}] unreduced={x}", {8, 6}},
    {"parts", {8, 6}, "[(2:{}, 4:{x}), {}]", {4, 6}},
    {"scalar", {}, "[]", {}},
};
TEST(TensorLayoutTest, DividesEachDimensionByItsAxes) {
  for (const LocalShapeCase& c : kLocalShapes) {
    const TensorLayout layout = parse_layout(c.layout, kMesh);
    EXPECT_EQ(check_layout(layout, kMesh, c.shape), "") << c.name;
    EXPECT_EQ(local_shape(layout, c.shape), c.local) << c.name;
    EXPECT_EQ(to_string(layout, kMesh), c.layout) << c.name;
  }
}

TEST(TensorLayoutTest, HoldsTheIndicesOfItsParts) {
  const auto held = [](const char* text, std::int64_t extent, std::int64_t point) {
    return held_indices(parse_layout(text, kMesh), kMesh, {extent}, point)[0];
  };
  EXPECT_EQ(held("[{x, y:(1)2}]", 8, 6), (std::vector<std::int64_t>{6, 7}));
  EXPECT_EQ(held("[{y:(1)2, x}]", 8, 4), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(held("[(2:{}, 4:{x})]", 8, 0), (std::vector<std::int64_t>{0, 1, 4, 5}));
  EXPECT_EQ(held("[(2:{}, 4:{x})]", 8, 4), (std::vector<std::int64_t>{2, 3, 6, 7}));
  // The same heads of q, k and v in a fused projection.
  EXPECT_EQ(held("[(3:{}, 4:{y}, 2:{})]", 24, 1), (std::vector<std::int64_t>{2, 3, 10, 11, 18, 19}));
}

struct CheckCase {
  const char* layout;
  Shape shape;
  const char* fault;
};
const CheckCase kChecks[] = {
    {"[{x, y}, {}]", {10, 6}, "dimension 0 of size 10 cannot be split into 8 by {x, y}"},
    {"[{x}]", {8, 6}, "the layout has 1 dimensions, the tensor [8, 6] has 2"},
    {"[(2:{}, 3:{}), {}]", {8, 6}, "the parts of dimension 0 multiply to 6, but its size is 8"},
    {"[(2:{y}, 4:{}), {}]", {8, 6}, "the part of size 2 of dimension 0 cannot be split into 4 by {y}"},
    {"[{}, {}]", {0, 6}, ""},
    {"[{x}, {}]", {0, 6}, "a part of dimension 0 has size 0; expected at least 1"},
};
TEST(TensorLayoutTest, ChecksLayoutsAgainstShapes) {
  for (const CheckCase& c : kChecks) {
    EXPECT_EQ(check_layout(parse_layout(c.layout, kMesh), kMesh, c.shape), c.fault) << c.layout;
  }
}

TEST(TensorLayoutTest, ChecksWhatWasBuiltByHand) {
  TensorLayout layout = TensorLayout::replicated(1);
  layout.dimensions[0].parts[0].axes = {{7, 1, 2}};
  EXPECT_EQ(check_layout(layout, kMesh, {8}), "axis 7 does not exist on mesh x=2, y=4");
  layout.dimensions[0].parts[0].axes = {{1, 1, -2}};
  EXPECT_EQ(check_layout(layout, kMesh, {8}), "y:(1)-2 is not part of axis y of size 4; 1 * -2 must divide it");
  layout.dimensions[0].parts[0].axes = {{1, INT64_MAX, INT64_MAX}};
  EXPECT_NE(check_layout(layout, kMesh, {8}), "");
  const DeviceMesh six = DeviceMesh::parse("a=6");
  layout.dimensions[0].parts[0].axes = {{0, 1, 2}, {0, 3, 2}};
  EXPECT_EQ(check_layout(layout, six, {8}), "a:(1)2 and a:(3)2 overlap");
}

struct CanonicalCase {
  const char* layout;
  Shape shape;
  const char* canonical;
};
const CanonicalCase kCanonicals[] = {
    {"[{y:(1)2, y:(2)2}]", {8}, "[{y}]"},
    {"[{y:(2)2, y:(1)2}]", {8}, "[{y:(2)2, y:(1)2}]"},
    {"[{x, y:(1)1}]", {8}, "[{x}]"},
    {"[(2:{x}, 4:{})]", {8}, "[{x}]"},
    {"[(4:{x}, 2:{})]", {8}, "[{x}]"},
    {"[(4:{x}, 2:{y:(1)2})]", {8}, "[(4:{x}, 2:{y:(1)2})]"},
    {"[(2:{x}, 4:{y:(1)2})]", {8}, "[{x, y:(1)2}]"},
    {"[(2:{}, 2:{}, 2:{x})]", {8}, "[(4:{}, 2:{x})]"},
    {"[(2:{y:(1)2}, 4:{y:(2)2})]", {8}, "[{y}]"},
    {"[{}] unreduced={y:(2)2, x, y:(1)2}", {8}, "[{}] unreduced={x, y}"},
    {"[{}] unreduced={x:(1)1} unreduced_kind=min", {8}, "[{}]"},
};
TEST(TensorLayoutTest, HasOneCanonicalForm) {
  for (const CanonicalCase& c : kCanonicals) {
    const TensorLayout layout = parse_layout(c.layout, kMesh);
    ASSERT_EQ(check_layout(layout, kMesh, c.shape), "");
    const TensorLayout form = canonical(layout, kMesh, c.shape);
    EXPECT_EQ(to_string(form, kMesh), c.canonical) << c.layout;
    EXPECT_EQ(canonical(form, kMesh, c.shape), form);
  }
}

// Two texts are equal exactly if they put the same elements on the same devices; the oracle compares what each device
// holds.
TEST(TensorLayoutTest, EqualFormsPlaceAlikeAndOthersDoNot) {
  const DeviceMesh mesh = DeviceMesh::parse("a=2,b=6,c=2");
  const Shape shape = {24, 12};
  Random random(5);
  std::map<std::vector<std::vector<std::vector<std::int64_t>>>, TensorLayout> known;
  std::size_t repeats = 0;
  for (int i = 0; i < 3000; ++i) {
    TensorLayout layout = random_layout(mesh, shape, random, true, true);
    layout.partial.clear();
    layout.reduction = Reduction::kSum;
    std::vector<std::vector<std::vector<std::int64_t>>> held;
    for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
      held.push_back(held_indices(layout, mesh, shape, point));
    }
    const auto [entry, is_new] = known.emplace(held, layout);
    if (!is_new) {
      ++repeats;
      EXPECT_EQ(entry->second, layout);
      EXPECT_EQ(std::hash<TensorLayout>()(entry->second), std::hash<TensorLayout>()(layout));
    }
  }
  EXPECT_GT(repeats, 300u);
  std::map<std::string, int> forms;
  for (const auto& [held, layout] : known) EXPECT_EQ(forms[to_string(layout, mesh)]++, 0) << to_string(layout, mesh);
}

}  // namespace
}  // namespace shardplan
