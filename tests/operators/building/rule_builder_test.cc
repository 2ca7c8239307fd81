#include "operators/building/rule_builder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "tests/support/operations.h"

namespace shardplan {
namespace {

TEST(RuleBuilderTest, BuildsTheRuleOfAProduct) {
  RuleBuilder builder;
  const TensorWalk batch = builder.add_named("b", {4, 1, 3});
  const DimensionWalk m = builder.add("m", 32);
  const DimensionWalk k = builder.add("k", 64);
  const DimensionWalk n = builder.add("n", 16);
  builder.set_kind(k, FactorKind::kReduction);
  builder.operand(concatenate(batch, {m, k}));
  builder.operand({k, n});
  builder.result(concatenate(batch, {product(m, n)}));
  const ShardingRule rule = builder.build();
  EXPECT_EQ(to_string(rule), "b0 1 b2 m k, k n -> b0 1 b2 (m n); k: sum");
  EXPECT_EQ(rule.factors[0], (Factor{"b0", 4}));
  EXPECT_EQ(rule.factors[3], (Factor{"k", 64, FactorKind::kReduction}));
}

TEST(RuleBuilderTest, NamesPositions) {
  EXPECT_EQ(position_name(0), "a");
  EXPECT_EQ(position_name(25), "z");
  EXPECT_EQ(position_name(26), "d26");
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions({5, 1, 7});
  EXPECT_EQ(walk[1], whole());
  builder.set_equal_pieces(walk[2]);
  builder.operand(walk);
  builder.result(broadcast_walk(walk, {5, 1, 7}, {1, 7}));
  const ShardingRule rule = builder.build();
  EXPECT_EQ(to_string(rule), "a 1 c -> 1 c");
  EXPECT_FALSE(rule.factors[0].has_equal_pieces);
  EXPECT_TRUE(rule.factors[1].has_equal_pieces);
}

/// Numpy's definition: two shapes are compatible if each pair of right-aligned sizes is equal or one of them is 1 or
/// missing.
std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result;
  for (std::size_t back = 1; back <= std::max(a.size(), b.size()); ++back) {
    const std::int64_t x = back <= a.size() ? a[a.size() - back] : 1;
    const std::int64_t y = back <= b.size() ? b[b.size() - back] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result.insert(result.begin(), x == 1 ? y : x);
  }
  return result;
}

TEST(RuleBuilderTest, BroadcastsAsNumpyDoes) {
  constexpr std::uint64_t kSeed = 23;
  Random random(kSeed);
  const Operation add = operation_of("Add", {}, {{2}, {2}});
  std::size_t fits = 0, faults = 0;
  for (int i = 0; i < 500; ++i) {
    Shape shapes[2];
    for (Shape& shape : shapes) {
      for (std::uint64_t rank = random.below(4); rank > 0; --rank) {
        shape.push_back(static_cast<std::int64_t>(random.below(4)));  // 0 too
      }
    }
    const std::optional<Shape> expected = broadcast(shapes[0], shapes[1]);
    std::optional<Shape> found;
    try {
      found = broadcast_shapes(add, shapes[0], shapes[1]);
    } catch (const InputError&) {
    }
    EXPECT_EQ(found, expected) << to_string(shapes[0]) << " and " << to_string(shapes[1]) << ", seed " << kSeed;
    ++(expected ? fits : faults);
  }
  EXPECT_GT(fits, 50u);
  EXPECT_GT(faults, 50u);
}

std::string fault_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.diagnostics().at(0).message;
  }
  return "";
}

TEST(RuleBuilderTest, CountsAxesFromBothEnds) {
  const Operation add = operation_of("Add", {}, {{2}, {2}});
  using Axes = std::vector<std::size_t>;
  EXPECT_EQ(normal_axis(add, 2, 3), 2u);
  EXPECT_EQ(normal_axis(add, -3, 3), 0u);
  EXPECT_EQ(normal_axes(add, {-1, 0}, 3), (Axes{0, 2}));
  EXPECT_EQ(normal_axes(add, {}, 3), (Axes{0, 1, 2}));
  EXPECT_EQ(fault_of([&] { normal_axis(add, 3, 3); }), "axis 3 of Add is outside [-3, 3)");
  EXPECT_EQ(fault_of([&] { normal_axis(add, -4, 3); }), "axis -4 of Add is outside [-3, 3)");
  EXPECT_EQ(fault_of([&] { normal_axes(add, {2, -1}, 3); }), "Add: axis 2 is given twice");
}

TEST(RuleBuilderTest, ChecksShapesAndSizes) {
  const Operation add = operation_of("Add", {}, {{2, 3}, {3}});
  check_shape(add, 0, {2, 3});
  EXPECT_EQ(fault_of([&] { check_shape(add, 1, {2, 3}); }), "Add: the shape of x2 is [3]; expected [2, 3]");
  EXPECT_EQ(checked_size(add, 7), 7);
  EXPECT_EQ(fault_of([&] { checked_size(add, std::nullopt); }),
            "Add: the result has more elements than 64 bits can count");
}

}  // namespace
}  // namespace shardplan
