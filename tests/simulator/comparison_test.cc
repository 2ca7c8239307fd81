#include "simulator/proof/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace shardplan {
namespace {

constexpr double kInfinity = HUGE_VAL;
const double kNone = std::nan("");
const DeviceMesh kComparedMesh = DeviceMesh::parse("x=2,y=2");
const Shape kComparedShape = {4, 4};

TEST(ComparisonTest, DistancesOfNumbersThatAreNone) {
  EXPECT_EQ(distance(1.5, 1), 0.5);
  EXPECT_EQ(distance(kInfinity, kInfinity), 0);
  EXPECT_EQ(distance(-kInfinity, kInfinity), kInfinity);
  EXPECT_EQ(distance(kNone, kNone), 0);
  EXPECT_EQ(distance(kNone, 1), kInfinity);
  EXPECT_EQ(distance(1, kNone), kInfinity);
}

TEST(ComparisonTest, TheScaleLeavesOutWhatStandsForInfinity) {
  EXPECT_EQ(scale_of({1, -3, 2}), 3);
  EXPECT_EQ(scale_of({1, -1e9}), 1);
  EXPECT_EQ(scale_of({-1e9}), 0);
  EXPECT_EQ(scale_of({}), 0);
}

TEST(ComparisonTest, MasksAreAllowedAPartOfThemselves) {
  const Tolerance tolerance{1e-3, 0.5};
  EXPECT_DOUBLE_EQ(tolerance.allowed(10, 2), 0.01 + 0.5);
  EXPECT_NEAR(tolerance.allowed(10, -1e9), 1e6, 1);
  EXPECT_NEAR((Tolerance{1e-3, 0.5, 2e-3}).allowed(10, -1e9), 3e6, 1) << "and what rounding moves them by";
}

ProgramValue sharded_value(const char* layout) {
  ProgramValue value;
  value.type = {kComparedShape, DataType::kF64};
  value.layout = parse_layout(layout, kComparedMesh);
  value.local_shape = local_shape(value.layout, kComparedShape);
  return value;
}
TensorValues numbered() {
  TensorValues values(16);
  std::iota(values.begin(), values.end(), 1);
  return values;
}
PlacedValue placed(const char* layout) {
  return {scatter(numbered(), kComparedShape, parse_layout(layout, kComparedMesh), kComparedMesh, 5), {}, {}};
}

TEST(ComparisonTest, AllCopiesOnAllDevicesAreCompared) {
  for (const auto& [layout, compared] :
       {std::pair{"[{x}, {y}]", 16}, {"[{x}, {}]", 32}, {"[{}, {}]", 64}, {"[{y}, {}] unreduced={x}", 32}}) {
    const Comparison comparison = compare(placed(layout), sharded_value(layout), kComparedMesh, numbered(), {1e-12, 0});
    EXPECT_TRUE(comparison.is_equal()) << layout;
    EXPECT_EQ(comparison.num_compared, compared) << layout;
    EXPECT_EQ(comparison.scale, 16) << layout;
  }
}

TEST(ComparisonTest, NamesTheFirstThatDiffers) {
  PlacedValue value = placed("[{x}, {y}]");
  value.data[2].edit()[3] += 2;  // x=1, y=0: rows 2 and 3, columns 0 and 1
  value.data[3].edit()[0] += 0.1;
  const Comparison comparison = compare(value, sharded_value("[{x}, {y}]"), kComparedMesh, numbered(), {1e-3, 0});
  EXPECT_EQ(comparison.num_differing, 2);
  EXPECT_EQ(comparison.num_devices_wrong, 2);
  EXPECT_EQ(comparison.point, 2);
  EXPECT_EQ(comparison.local_index, (Shape{1, 1}));
  EXPECT_EQ(comparison.global_index, (Shape{3, 1}));
  EXPECT_EQ(comparison.should_be, 14);
  EXPECT_EQ(comparison.found, 16);
  EXPECT_EQ(comparison.largest, 2);
  EXPECT_NEAR(comparison.worst, 2 / 0.016, 1e-6);  // a thousandth of 16 is allowed
  EXPECT_TRUE(compare(value, sharded_value("[{x}, {y}]"), kComparedMesh, numbered(), {0.2, 0}).is_equal());
}

TEST(ComparisonTest, PartialValuesAreReducedFirst) {
  const DeviceBuffers whole =
      completed(placed("[{}, {}] unreduced={x}"), sharded_value("[{}, {}] unreduced={x}"), kComparedMesh);
  for (const std::vector<double>& buffer : whole) {
    for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(buffer[i], static_cast<double>(i) + 1, 1e-9);
  }
}

TEST(ComparisonTest, SaysWhatAWrongValueLooksLike) {
  const auto looks = [](PlacedValue value, const char* layout) {
    return looks_like(value, sharded_value(layout), kComparedMesh, numbered(), {1e-9, 0});
  };
  PlacedValue zeros = placed("[{x}, {}]");
  for (DeviceBuffer& buffer : zeros.data) buffer = std::vector<double>(buffer.size(), 0.0);
  EXPECT_NE(looks(zeros, "[{x}, {}]").find("zero"), std::string::npos) << looks(zeros, "[{x}, {}]");
  PlacedValue other = placed("[{x}, {}]");
  std::swap(other.data[0], other.data[2]);
  std::swap(other.data[1], other.data[3]);
  EXPECT_NE(looks(other, "[{x}, {}]"), "");
  PlacedValue doubled = placed("[{x}, {}]");
  change_each(doubled.data, [](std::vector<double>& buffer) {
    for (double& value : buffer) value *= 2;
  });
  EXPECT_NE(looks(doubled, "[{x}, {}]"), "");
  PlacedValue noise = placed("[{x}, {}]");
  change_each(noise.data, [](std::vector<double>& buffer) {
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = std::sin(1.7 * static_cast<double>(i * i + 1));
  });
  EXPECT_EQ(looks(noise, "[{x}, {}]"), "");
}

}  // namespace
}  // namespace shardplan
