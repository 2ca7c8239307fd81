// Numbers from reference tables of MindSpore's own unit tests (tensor_layout_test, redistribution_layout_transfer_test
// and ops_info there), read as layouts.

#include "layouts/mindspore_layout.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "layouts/reshape.h"
#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

DeviceMesh ranks(std::int64_t count) { return DeviceMesh({{"d", count}}); }

TEST(MindSporeLayoutTest, SplitsRanksIntoConsecutiveFactors) {
  const DeviceMesh mesh = DeviceMesh::parse("pcie=2,hccs=4");
  using Pieces = std::vector<std::vector<AxisRef>>;
  EXPECT_EQ(split_ranks(mesh, {2, 4}), (Pieces{{{0, 1, 2}}, {{1, 1, 4}}, {}}));
  EXPECT_EQ(split_ranks(mesh, {4, 2}), (Pieces{{{0, 1, 2}, {1, 1, 2}}, {{1, 2, 2}}, {}}));
  EXPECT_EQ(split_ranks(mesh, {4}), (Pieces{{{0, 1, 2}, {1, 1, 2}}, {{1, 2, 2}}}));
  EXPECT_EQ(split_ranks(mesh, {1, 1}), (Pieces{{}, {}, {{0, 1, 2}, {1, 1, 4}}}));
  EXPECT_EQ(split_ranks(mesh, {2, 2, 2}), (Pieces{{{0, 1, 2}}, {{1, 1, 2}}, {{1, 2, 2}}, {}}));
  EXPECT_EQ(split_ranks(mesh, {}), (Pieces{{{0, 1, 2}, {1, 1, 4}}}));
  for (const std::vector<std::int64_t>& bad : std::vector<std::vector<std::int64_t>>{{3}, {16}, {2, 8}, {0}, {-2}}) {
    EXPECT_EQ(split_ranks(mesh, bad), std::nullopt);
  }
  EXPECT_EQ(split_ranks(DeviceMesh::parse("x=2,y=3"), {3, 2}), std::nullopt);
}

struct TupleCase {
  const char* mesh;
  std::vector<std::int64_t> tuple;
  const char* layout;
};
const TupleCase kTuples[] = {
    {"pcie=2,hccs=4", {2, 4}, "[{pcie}, {hccs}]"}, {"pcie=2,hccs=4", {4, 2}, "[{pcie, hccs:(1)2}, {hccs:(2)2}]"},
    {"pcie=2,hccs=4", {2, 1}, "[{pcie}, {}]"},     {"pcie=2,hccs=4", {1, 2}, "[{}, {pcie}]"},
    {"pcie=2,hccs=4", {1, 1}, "[{}, {}]"},         {"d=12", {3, 2}, "[{d:(1)3}, {d:(3)2}]"},
};
TEST(MindSporeLayoutTest, TuplesAreCutsOfConsecutiveRanks) {
  for (const TupleCase& c : kTuples) {
    const DeviceMesh mesh = DeviceMesh::parse(c.mesh);
    const auto layout = layout_of_tuple(c.tuple, mesh);
    ASSERT_TRUE(layout);
    EXPECT_EQ(to_string(*layout, mesh), c.layout);
    EXPECT_EQ(tuple_of_layout(*layout, mesh, {48, 48}), c.tuple);
  }
}

TEST(MindSporeLayoutTest, OtherLayoutsHaveNoTuple) {
  const DeviceMesh mesh = DeviceMesh::parse("pcie=2,hccs=4");
  for (const char* text : {"[{hccs}, {pcie}]", "[{}, {}] unreduced={pcie}", "[(2:{}, 4:{pcie}), {}]", "[{hccs}, {}]"}) {
    EXPECT_EQ(tuple_of_layout(parse_layout(text, mesh), mesh, {8, 8}), std::nullopt) << text;
  }
}

struct FormCase {
  const char* layout;
  const char* merged;
  const char* per_axis;
};
const FormCase kForms[] = {
    {"[{pcie}, {hccs}]", "(2, 4), (1, 0)", "(2, 4), (1, 0)"},
    {"[{hccs}, {pcie}]", "(2, 4), (0, 1)", "(2, 4), (0, 1)"},
    {"[{pcie, hccs}, {}]", "(8), (0, -1)", "(2, 4), ((1, 0), -1)"},
    {"[{hccs, pcie}, {}]", "(2, 4), ((0, 1), -1)", "(2, 4), ((0, 1), -1)"},
    {"[{pcie, hccs:(1)2}, {hccs:(2)2}]", "(4, 2), (1, 0)", "(2, 2, 2), ((2, 1), 0)"},
    {"[{hccs:(2)2}, {}]", "(4, 2), (0, -1)", "(2, 2, 2), (0, -1)"},
    {"[{hccs:(2)2, pcie}, {}]", "(2, 2, 2), ((0, 2), -1)", "(2, 2, 2), ((0, 2), -1)"},
    {"[{}, {}]", "(8), (-1, -1)", "(2, 4), (-1, -1)"},
};
TEST(MindSporeLayoutTest, DeviceMatricesExpressAnyOrderOfAxes) {
  const DeviceMesh mesh = DeviceMesh::parse("pcie=2,hccs=4");
  for (const FormCase& c : kForms) {
    const TensorLayout layout = parse_layout(c.layout, mesh);
    const auto merged = merged_mindspore_layout(layout, mesh, {8, 8});
    ASSERT_TRUE(merged) << c.layout;
    EXPECT_EQ(to_string(*merged), c.merged);
    EXPECT_EQ(to_string(layout_of(*merged, mesh), mesh), c.layout);
    const auto per_axis = per_axis_mindspore_layout(layout, mesh);
    ASSERT_TRUE(per_axis) << c.layout;
    EXPECT_EQ(to_string(*per_axis), c.per_axis);
    EXPECT_EQ(to_string(layout_of(*per_axis, mesh), mesh), c.layout);
  }
  EXPECT_EQ(merged_mindspore_layout(parse_layout("[{}, {}] unreduced={pcie}", mesh), mesh, {8, 8}), std::nullopt);
  EXPECT_EQ(merged_mindspore_layout(parse_layout("[(2:{}, 4:{pcie}), {}]", mesh), mesh, {8, 8}), std::nullopt);
}

TEST(MindSporeLayoutTest, AllLayoutsOfWholeAndPartAxesComeBack) {
  Random random(23);
  const DeviceMesh mesh = DeviceMesh::parse("a=4,b=6,c=2");
  const Shape shape = {48, 48, 48};
  for (int i = 0; i < 500; ++i) {
    TensorLayout layout = random_layout(mesh, shape, random, true, false);
    layout.partial.clear();
    layout.reduction = Reduction::kSum;
    const auto merged = merged_mindspore_layout(layout, mesh, shape);
    ASSERT_TRUE(merged);
    EXPECT_EQ(canonical(layout_of(*merged, mesh), mesh, shape), layout) << to_string(*merged);
    const auto per_axis = per_axis_mindspore_layout(layout, mesh);
    if (!per_axis) continue;
    EXPECT_EQ(canonical(layout_of(*per_axis, mesh), mesh, shape), layout) << to_string(*per_axis);
  }
}

TEST(MindSporeLayoutTest, SaysWhatIsWrongWithADeviceMatrix) {
  const DeviceMesh mesh = ranks(8);
  const auto fault = [&](const MindSporeLayout& bad) -> std::string {
    try {
      layout_of(bad, mesh);
    } catch (const InputError& error) {
      return error.diagnostics().at(0).message;
    }
    return "";
  };
  EXPECT_EQ(fault(mindspore_layout({4, 4}, {1, 0})), "device_matrix (4, 4) multiplies to 16, but there are 8 devices");
  EXPECT_EQ(fault(mindspore_layout({8, 0}, {1, 0})), "device_matrix (8, 0), (1, 0): found 0; expected at least 1");
  EXPECT_EQ(fault(mindspore_layout({4, 2}, {2, 0})), "tensor_map has 2; expected -1 to 1 for a device_matrix of 2");
  EXPECT_EQ(fault(mindspore_layout({4, 2}, {0, 0})), "tensor_map has 0 twice");
}

// Table 1.A and 1.B: the common refinement of both ends.
struct UnifyCase {
  const char* name;
  Shape from_shape;
  MindSporeLayout from;
  Shape to_shape;
  MindSporeLayout to;
  Shape unified;
  MindSporeLayout unified_from;
  MindSporeLayout unified_to;
};
const UnifyCase kUnify[] = {
    {"U1",
     {512, 1024},
     mindspore_layout({8, 4}, {1, 0}),
     {512, 1024},
     mindspore_layout({2, 16}, {1, 0}),
     {2, 256, 4, 256},
     mindspore_layout({2, 4, 4}, {2, 1, 0, -1}),
     mindspore_layout({2, 4, 4}, {2, -1, 1, 0})},
    {"U3",
     {512, 1024},
     mindspore_layout({8}, {0, -1}),
     {512, 1024},
     mindspore_layout({2, 2, 2}, {2, 1}),
     {2, 2, 128, 1024},
     mindspore_layout({2, 2, 2}, {2, 1, 0, -1}),
     mindspore_layout({2, 2, 2}, {2, -1, -1, 1})},
    {"U5",
     {512, 1024},
     mindspore_layout({16}, {0, -1}),
     {512, 1024},
     mindspore_layout({16}, {-1, 0}),
     {512, 1024},
     mindspore_layout({16}, {0, -1}),
     mindspore_layout({16}, {-1, 0})},
    {"Q1",
     {512, 1024},
     mindspore_layout({8, 4}, {1, 0}),
     {128, 4096},
     mindspore_layout({8, 4}, {1, 0}),
     {128, 4, 1024},
     mindspore_layout({8, 4}, {1, -1, 0}),
     mindspore_layout({8, 4}, {1, 0, -1})},
};
TEST(MindSporeLayoutTest, UnifiesAsMindSporeDoes) {
  for (const UnifyCase& c : kUnify) {
    std::int64_t devices = 1;
    for (const std::int64_t size : c.from.device_matrix) devices *= size;
    const DeviceMesh mesh = ranks(devices);
    const auto reshaped_side = [&](const MindSporeLayout& side, const Shape& shape) {
      return reshaped(layout_of(side, mesh), shape, c.unified);
    };
    const auto expected = [&](const MindSporeLayout& side) {
      return canonical(layout_of(side, mesh), mesh, c.unified);
    };
    EXPECT_EQ(reshaped_side(c.from, c.from_shape), expected(c.unified_from)) << c.name;
    EXPECT_EQ(reshaped_side(c.to, c.to_shape), expected(c.unified_to)) << c.name;
  }
}

// Table 1.C: the same layout on an expanded device matrix or shape, and without entries of 1.
struct ExpandCase {
  const char* name;
  std::int64_t devices;
  Shape shape;
  MindSporeLayout before;
  Shape expanded;
  MindSporeLayout after;
};
const ExpandCase kExpand[] = {
    {"E1",
     32,
     {512, 1024},
     mindspore_layout({8, 4}, {1, 0}),
     {4, 128, 2, 512},
     mindspore_layout({4, 2, 2, 2}, {3, 2, 1, 0})},
    {"E3",
     32,
     {512, 1024},
     mindspore_layout({8, 4}, {1, -1}),
     {4, 128, 1024},
     mindspore_layout({4, 2, 2, 2}, {3, 2, -1})},
    {"E5",
     32,
     {128, 4, 1024},
     mindspore_layout({8, 4}, {1, -1, 0}),
     {128, 4, 1024},
     mindspore_layout({8, 4}, {1, -1, 0})},
    {"E7", 32, {128, 4096}, mindspore_layout({8, 4}, {1, 0}), {128, 4, 1024}, mindspore_layout({8, 4}, {1, 0, -1})},
    {"E11", 16, {512, 1024}, mindspore_layout({16, 1, 1}, {2, 0}), {512, 1024}, mindspore_layout({16}, {0, -1})},
    {"E13", 1, {512, 1024}, mindspore_layout({1, 1, 1}, {2, 1}), {512, 1024}, mindspore_layout({}, {-1, -1})},
    {"E15",
     32,
     {512, 1024},
     mindspore_layout({8, 4}, {1, 0}),
     {8, 64, 4, 256},
     mindspore_layout({8, 4}, {1, -1, 0, -1})},
    {"E17", 8, {1, 1, 1, 1}, mindspore_layout({8}, {-1, -1, -1, -1}), {1}, mindspore_layout({8}, {-1})},
};
TEST(MindSporeLayoutTest, ExpandsAsMindSporeDoes) {
  for (const ExpandCase& c : kExpand) {
    const DeviceMesh mesh = ranks(c.devices);
    const TensorLayout after = canonical(layout_of(c.after, mesh), mesh, c.expanded);
    EXPECT_EQ(reshaped(layout_of(c.before, mesh), c.shape, c.expanded), after) << c.name;
  }
  EXPECT_EQ(merged_mindspore_layout(layout_of(mindspore_layout({16, 1, 1}, {2, 0}), ranks(16)), ranks(16), {512, 1024}),
            mindspore_layout({16}, {0, -1}));
  EXPECT_EQ(merged_mindspore_layout(TensorLayout::replicated(2), ranks(1), {512, 1024}),
            mindspore_layout({}, {-1, -1}));
}

// Section 2.7: an operator's device matrix, a tensor's map and its slice.
struct SliceCase {
  const char* name;
  std::vector<std::int64_t> matrix;
  Shape shape;
  std::vector<std::int64_t> map;
  Shape slice;
};
const SliceCase kSlices[] = {
    {"O1_a", {2, 4, 8, 16, 1}, {2, 4, 8, 16}, {4, 3, 2, 1}, {1, 1, 1, 1}},
    {"O1_b", {2, 4, 8, 16, 1}, {2, 4, 16, 32}, {4, 3, 1, 0}, {1, 1, 1, 32}},
    {"O1_out", {2, 4, 8, 16, 1}, {2, 4, 8, 32}, {4, 3, 2, 0}, {1, 1, 1, 32}},
    {"O5_b", {2, 4, 8, 16, 1}, {32, 16}, {0, 1}, {32, 1}},
    {"O7_a", {2, 4, 8, 16, 1}, {8, 16}, {2, 1}, {1, 1}},
    {"O7_b", {2, 4, 8, 16, 1}, {2, 4, 32, 16}, {4, 3, 0, 1}, {1, 1, 32, 1}},
    {"O11", {2, 4, 1, 16}, {2, 4, 8, 16}, {3, 2, 1, 0}, {1, 1, 8, 1}},
    {"O15", {2, 4, 4}, {32, 64, 96}, {2, 1, 0}, {16, 16, 24}},
    {"O17_in", {8, 1}, {64}, {1}, {8}},
    {"O17_out", {8, 1}, {64, 10}, {1, 0}, {8, 10}},
    {"O19_in", {4, 2}, {64}, {1}, {16}},
    {"O19_out", {4, 2}, {64, 10}, {1, 0}, {16, 5}},
    {"O21_in", {8, 1}, {64}, {1}, {8}},
    {"O21_out", {8, 1}, {10, 64}, {0, 1}, {10, 8}},
    {"O23_in", {4, 8}, {128, 64}, {1, 0}, {32, 8}},
    {"O23_out", {4, 8}, {64, 128}, {0, 1}, {8, 32}},
    {"O25", {8, 128, 1}, {1024, 4}, {1, 0}, {8, 4}},
    {"O27", {4, 8}, {32, 128}, {1, 0}, {8, 16}},
    {"O29_0", {8, 1}, {64, 32}, {1, 0}, {8, 32}},
    {"O29_1", {8, 1}, {64}, {1}, {8}},
};
TEST(MindSporeLayoutTest, SlicesOfOperators) {
  for (const SliceCase& c : kSlices) {
    std::int64_t devices = 1;
    for (const std::int64_t size : c.matrix) devices *= size;
    const DeviceMesh mesh = ranks(devices);
    const TensorLayout layout = layout_of(mindspore_layout(c.matrix, c.map), mesh);
    EXPECT_EQ(check_layout(layout, mesh, c.shape), "") << c.name;
    EXPECT_EQ(local_shape(layout, c.shape), c.slice) << c.name;
  }
}

}  // namespace
}  // namespace shardplan
