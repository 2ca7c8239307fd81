#include "operators/sharding_rule.h"

#include <gtest/gtest.h>

#include "operators/catalogue.h"

namespace shardplan {
namespace {

using List = std::vector<std::int64_t>;

Operation operation_on(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  std::vector<TensorType> operands;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const bool is_index = (type == "Gather" && i == 1) || type == "OneHot";
    operands.push_back({shapes[i], is_index ? DataType::kI32 : DataType::kF32});
  }
  return make_operation(*find_operator_type(type), attributes, operands);
}

std::string rule(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  return to_string(operation_on(type, attributes, shapes).rule);
}

// Rows O1 to O23 of the unit vectors of MindSpore's operator layouts: which dimensions are sharded together.
TEST(ShardingRuleTest, FollowsMindSporesUnitVectors) {
  EXPECT_EQ(rule("MatMul", {}, {{2, 4, 8, 16}, {2, 4, 16, 32}}), "b0 b1 m k, b0 b1 k n -> b0 b1 m n; k: sum");
  EXPECT_EQ(rule("MatMul", {{"transpose_b", true}}, {{2, 4, 8, 16}, {32, 16}}), "b0 b1 m k, n k -> b0 b1 m n; k: sum");
  EXPECT_EQ(rule("MatMul", {{"transpose_b", true}}, {{8, 16}, {2, 4, 32, 16}}), "m k, b0 b1 n k -> b0 b1 m n; k: sum");
  EXPECT_EQ(rule("Softmax", {{"axis", std::int64_t{-2}}}, {{2, 4, 8, 16}}), "a b c d -> a b c d; c: normalised");
  EXPECT_EQ(rule("Add", {}, {{32, 64, 96}, {32, 64, 96}}), "a b c, a b c -> a b c");
  EXPECT_EQ(rule("OneHot", {{"depth", std::int64_t{10}}}, {{64}}), "b -> b depth");
  EXPECT_EQ(rule("OneHot", {{"depth", std::int64_t{10}}, {"axis", std::int64_t{0}}}, {{64}}), "b -> depth b");
  EXPECT_EQ(rule("Transpose", {{"perm", List{1, 0}}}, {{128, 64}}), "a b -> b a");
}

TEST(ShardingRuleTest, ReadsAsTheCatalogueSays) {
  EXPECT_EQ(rule("Gather", {}, {{50304, 768}, {32, 1024}}), "v h, b0 b1 -> b0 b1 h; v: sum");
  EXPECT_EQ(rule("Add", {}, {{8, 1, 4}, {6, 1}}), "a 1 c, b 1 -> a b c");
  EXPECT_EQ(rule("LayerNorm", {}, {{8, 4, 16}, {16}, {16}}), "a b c, c, c -> a b c; c: normalised");
  EXPECT_EQ(rule("LayerNormGrad", {}, {{8, 4, 16}, {8, 4, 16}, {16}}),
            "a b c, a b c, c -> a b c, c, c; a: sum; b: sum; c: normalised");
  EXPECT_EQ(rule("Split", {{"axis", std::int64_t{3}}, {"output_num", std::int64_t{3}}}, {{8, 4, 12, 192}}),
            "a b c (piece d) -> a b c d, a b c d, a b c d; piece: whole");
  EXPECT_EQ(rule("Conv2D", {{"stride", List{2}}, {"group", std::int64_t{2}}}, {{32, 16, 8, 8}, {8, 8, 3, 3}}),
            "n (g i) 2*h+kh 2*w+kw, (g o) i kh kw -> n (g o) h w; i: sum; kh: whole; kw: whole");
  EXPECT_EQ(rule("ReduceMax", {{"axis", List{-1}}}, {{8, 4}}), "a b -> a; b: max");
}

TEST(ShardingRuleTest, ReshapeRefinesBothShapes) {
  const auto reshape = [](const Shape& from, const Shape& to) { return rule("Reshape", {{"shape", to}}, {from}); };
  EXPECT_EQ(reshape({32, 1024, 2304}, {32, 1024, 12, 192}), "a b (c d) -> a b c d");
  EXPECT_EQ(reshape({8, 16, 4}, {128, 4}), "a b c -> (a b) c");
  EXPECT_EQ(reshape({6, 4}, {2, 12}), "(a b) c -> a (b c)");
  EXPECT_EQ(reshape({2, 3, 5}, {2, 5, 3}), "a b d -> a c e; b: whole; c: whole; d: whole; e: whole");
  EXPECT_EQ(reshape({4, 6}, {6, 4}), "(a b) d -> (a c) e; b: whole; c: whole; d: whole; e: whole");
  EXPECT_EQ(reshape({1, 8}, {8, 1}), "1 a -> a 1");
  EXPECT_EQ(reshape({1}, {}), "1 -> ");
}

/// The halo of each device along one windowed dimension of operand 0: what it reads beyond its equal piece, before and
/// after; a negative width means that positions are unused.
struct Width {
  std::int64_t before, after;
  bool operator==(const Width&) const = default;
};
std::vector<Width> halo(const Operation& operation, std::size_t dimension, std::int64_t pieces) {
  const Window& window = *operation.rule.operands[0][dimension].window;
  const std::int64_t outputs = operation.rule.factors[window.output].size;
  const std::int64_t extent = operation.operands[0].shape[dimension];
  std::vector<Width> widths;
  for (std::int64_t p = 0; p < pieces; ++p) {
    const Interval reads = window_reads(window, operation.rule.factors[window.offset].size,
                                        {p * outputs / pieces, (p + 1) * outputs / pieces, outputs}, extent);
    widths.push_back({p * extent / pieces - reads.begin, reads.end - (p + 1) * extent / pieces});
  }
  return widths;
}

// A valid 5x5 on 32 rows in 4 pieces: right 3, 1|2, 2|1, left 3.
TEST(ShardingRuleTest, HaloDependsOnTheDevice) {
  const Operation conv = operation_on("Conv2D", {}, {{1, 1, 32, 32}, {1, 1, 5, 5}});
  EXPECT_EQ(halo(conv, 2, 4), (std::vector<Width>{{0, 3}, {1, 2}, {2, 1}, {3, 0}}));
  // Its gradient needs as much of dy, with 28 rows, in the opposite directions.
  const Operation grad =
      operation_on("Conv2DBackpropInput", {{"input_size", List{32, 32}}}, {{1, 1, 28, 28}, {1, 1, 5, 5}});
  EXPECT_EQ(halo(grad, 2, 4), (std::vector<Width>{{0, 1}, {3, 2}, {2, 3}, {1, 0}}));
}

// MindSpore's vectors of Conv2D: x [32, 16, 8, 8]. Where it exchanges halos, we do too; C15, which it rejects because
// of the slices, needs none of the neighbour's rows and is legal here.
TEST(ShardingRuleTest, FollowsMindSporesConvolutionVectors) {
  const auto conv = [](std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t size,
                       const std::string& mode, std::int64_t group) {
    return operation_on("Conv2D", {{"pad_mode", mode}, {"stride", List{stride}}, {"group", group}},
                        {{32, 16, size, size}, {out, 16 / group, kernel, kernel}});
  };
  const auto factor = [](const Operation& operation, std::string_view name) {
    return operation.rule.factors[*operation.rule.find(name)];
  };
  const Operation c1 = conv(8, 2, 1, 8, "same", 1);
  EXPECT_EQ(factor(c1, "n").size % 8, 0);
  const Operation c5 = conv(8, 2, 1, 8, "same", 2);
  EXPECT_EQ(factor(c5, "g").size, 2) << "channels cut in two are the groups; the weight's own are then whole";
  const Operation c7 = conv(8, 2, 2, 8, "same", 1);
  EXPECT_EQ(halo(c7, 2, 2), (std::vector<Width>{{0, 0}, {0, 0}})) << "no exchange";
  EXPECT_EQ(factor(c7, "i").kind, FactorKind::kReduction);
  const Operation c9 = conv(8, 3, 1, 8, "same", 1);
  EXPECT_EQ(halo(c9, 3, 4), (std::vector<Width>{{0, 1}, {1, 1}, {1, 1}, {1, 0}}));
  EXPECT_NE(factor(c7, "w").size % 8, 0) << "C13: out 4 not divisible by 8";
  const Operation c15 = conv(8, 1, 3, 10, "same", 1);
  EXPECT_EQ(halo(c15, 3, 2), (std::vector<Width>{{0, -1}, {-1, 0}}));
  const Operation c17 = conv(8, 5, 1, 8, "same", 1);
  EXPECT_EQ(halo(c17, 3, 8)[3], (Width{2, 2})) << "wider than the neighbour's one row: not legal";
}

TEST(ShardingRuleTest, WindowInThePaddingReadsNothing) {
  const Window window{0, 1, 1, 1, 3, 3};
  const Interval reads = window_reads(window, 2, {0, 1, 10}, 5);
  EXPECT_EQ(reads.begin, reads.end);
}

}  // namespace
}  // namespace shardplan
