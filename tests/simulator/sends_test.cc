// Tensors that go from one stage's devices to another's: sent box by box, and compared on the receiving devices.

#include "simulator/execute/sends.h"

#include <gtest/gtest.h>

#include "tests/layouts/all_layouts.h"

namespace shardplan {
namespace {

struct StagesCase {
  const char* name;
  DeviceMesh from;
  DeviceMesh to;
  Shape shape;
};
std::vector<StagesCase> stages() {
  const auto axes = [](const char* text) { return DeviceMesh::parse(text).axes(); };
  return {
      {"four_to_eight_others",
       DeviceMesh(axes("a=2,b=2")),
       DeviceMesh(axes("x=8"), {4, 5, 6, 7, 8, 9, 10, 11}),
       {16, 24}},
      {"eight_to_four_others", DeviceMesh(axes("a=2,b=4")), DeviceMesh(axes("x=4"), {8, 9, 10, 11}), {24, 16}},
      {"six_to_four", DeviceMesh(axes("a=3,b=2")), DeviceMesh(axes("x=2,y=2"), {6, 7, 8, 9}), {12, 24}},
      {"partly_the_same", DeviceMesh(axes("a=4")), DeviceMesh(axes("x=2,y=3"), {5, 3, 7, 1, 0, 9}), {12, 12, 6}},
      {"the_same_with_no_common_axes", DeviceMesh(axes("a=2,b=3")), DeviceMesh(axes("x=3,y=2")), {36, 12}},
      {"the_same_in_another_order",
       DeviceMesh(axes("a=4,b=2")),
       DeviceMesh(axes("x=8"), {7, 5, 3, 1, 0, 2, 4, 6}),
       {16, 8}},
  };
}

TEST(SendsTest, RandomPairsArriveWhole) {
  Random random(43);
  for (const StagesCase& c : stages()) {
    SCOPED_TRACE(c.name);
    std::vector<double> values;
    const std::int64_t size = num_elements(c.shape);
    for (std::int64_t i = 0; i < size; ++i) values.push_back(random.unit() * 2 - 1);
    for (int i = 0; i < 60; ++i) {
      TensorLayout from = random_layout(c.from, c.shape, random, true, true);
      from.partial.clear();
      from.reduction = Reduction::kSum;
      const TensorLayout to = random_layout(c.to, c.shape, random, true, true);
      const std::vector<BoxSend> sends = plan_sends(from, c.from, to, c.to, c.shape);
      const DeviceBuffers result =
          apply(sends, from, c.from, to, c.to, c.shape, scatter(values, c.shape, from, c.from));
      ASSERT_EQ(largest_error(result, values, c.shape, to, c.to), 0)
          << to_string(from, c.from) << " -> " << to_string(to, c.to);
      // In cells the sends are the same, with fewer positions.
      const TensorCells cells = cells_of(from, to, c.shape);
      const std::vector<BoxSend> short_sends = plan_sends(cells.from, c.from, cells.to, c.to, cells.shape);
      ASSERT_EQ(short_sends.size(), sends.size());
      for (std::size_t k = 0; k < sends.size(); ++k) {
        ASSERT_EQ(short_sends[k].from_device, sends[k].from_device);
        ASSERT_EQ(short_sends[k].to_device, sends[k].to_device);
        ASSERT_EQ(short_sends[k].num_elements() * cells.elements, sends[k].num_elements());
      }
    }
  }
}

TEST(SendsTest, ASendThatIsMissingIsSeen) {
  const DeviceMesh from = DeviceMesh::parse("a=4");
  const DeviceMesh to(DeviceMesh::parse("x=2,y=4").axes(), {4, 5, 6, 7, 8, 9, 10, 11});
  const Shape shape = {8, 8};
  const TensorLayout a = parse_layout("[{a}, {}]", from);
  const TensorLayout b = parse_layout("[{x}, {y}]", to);
  std::vector<double> values;
  for (int i = 0; i < 64; ++i) values.push_back(i + 1);
  const std::vector<BoxSend> sends = plan_sends(a, from, b, to, shape);
  ASSERT_EQ(sends.size(), 16u);
  for (std::size_t left_out = 0; left_out < sends.size(); ++left_out) {
    std::vector<BoxSend> fewer = sends;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(left_out));
    const DeviceBuffers result = apply(fewer, a, from, b, to, shape, scatter(values, shape, a, from));
    EXPECT_GT(largest_error(result, values, shape, b, to), 0);
  }
}

}  // namespace
}  // namespace shardplan
