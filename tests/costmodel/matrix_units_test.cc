#include "costmodel/matrix_units.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

std::optional<ProductShape> product_shape_of(const char* type, Attributes attributes, std::vector<Shape> operands) {
  std::vector<TensorType> types;
  for (Shape& shape : operands) types.push_back({std::move(shape), DataType::kF16});
  const Operation operation = make_operation(*find_operator_type(type), attributes, std::move(types));
  std::vector<std::int64_t> extents;
  for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
  return product_shape(operation, extents);
}

TEST(ProductShapeTest, FollowsWhichTensorsWalkAFactor) {
  EXPECT_EQ(product_shape_of("MatMul", {}, {{32, 64}, {64, 16}}), (ProductShape{1, 32, 16, 64}));
  EXPECT_EQ(product_shape_of("MatMul", {}, {{4, 8, 64}, {64, 16}}), (ProductShape{1, 32, 16, 64}));
  EXPECT_EQ(product_shape_of("BatchMatMul", {}, {{3, 5, 32, 64}, {3, 5, 64, 16}}), (ProductShape{15, 32, 16, 64}));
  // Positions of 8 images by channels out; channels in times the window.
  EXPECT_EQ(product_shape_of("Conv2D", {{"pad_mode", std::string("same")}}, {{8, 16, 28, 28}, {32, 16, 3, 3}}),
            (ProductShape{1, 8 * 28 * 28, 32, 16 * 9}));
  EXPECT_EQ(product_shape_of("Softmax", {}, {{8, 8}}), std::nullopt);
}

TEST(MatrixUnitsTest, WavesAreWhole) {
  const MatrixUnits units = {108, 128, 0};
  // 128 x 4 = 512 tiles: 4.74 waves take the time of 5.
  EXPECT_EQ(units_overhead_ppm({1, 16384, 512, 4096}, units), 1'054'687);
  // 108 tiles of one wave lose nothing.
  EXPECT_EQ(units_overhead_ppm({1, 108 * 128, 128, 4096}, units), 1'000'000);
  // One tile: its k is split among 64 units, and 44 are idle.
  EXPECT_EQ(units_overhead_ppm({1, 128, 128, 16384}, units), 1'687'500);
  // 130 columns are two tiles.
  EXPECT_EQ(units_overhead_ppm({1, 108 * 128, 130, 4096}, units), (2 * 128 * 1'000'000 + 129) / 130);
  EXPECT_EQ(units_overhead_ppm({1, 100, 100, 100}, {}), 1'000'000);
}

TEST(MatrixUnitsTest, AShortSumPaysForBeginningATile) {
  const MatrixUnits units = {108, 128, 128};
  EXPECT_EQ(units_overhead_ppm({108, 1280, 1280, 128}, units), 2'000'000);
  EXPECT_EQ(units_overhead_ppm({108, 1280, 1280, 1280}, units), 1'100'000);
}

TEST(MatrixUnitsTest, NothingIsFasterThanTheRateAndHugeShapesAreTaken) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const auto size = [&] { return static_cast<std::int64_t>(1 + random.below(std::uint64_t{1} << random.below(60))); };
    const ProductShape shape = {size(), size(), size(), size()};
    const MatrixUnits units = {static_cast<std::int64_t>(1 + random.below(200)),
                               static_cast<std::int64_t>(1 + random.below(300)),
                               static_cast<std::int64_t>(random.below(500))};
    EXPECT_GE(units_overhead_ppm(shape, units), 1'000'000) << "seed " << seed;
  }
}

}  // namespace
}  // namespace shardplan
