#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "operators/catalogue.h"
#include "operators/rule_parser.h"

namespace shardplan {
namespace {

using List = std::vector<std::int64_t>;

Operation make(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  std::vector<TensorType> operands;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const bool is_index = (type == "Gather" && i == 1) || type == "OneHot";
    operands.push_back({shapes[i], is_index ? DataType::kI32 : DataType::kF32});
  }
  return make_operation(*find_operator_type(type), attributes, operands);
}

std::string rule(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  return to_string(make(type, attributes, shapes).rule);
}

// Rows O1 to O23 of the unit vectors of MindSpore's operator layouts: which dimensions are cut together.
TEST(Rule, FollowsMindSporesUnitVectors) {
  EXPECT_EQ(rule("MatMul", {}, {{2, 4, 8, 16}, {2, 4, 16, 32}}), "b0 b1 m k, b0 b1 k n -> b0 b1 m n; k: sum");
  EXPECT_EQ(rule("MatMul", {{"transpose_b", true}}, {{2, 4, 8, 16}, {32, 16}}), "b0 b1 m k, n k -> b0 b1 m n; k: sum");
  EXPECT_EQ(rule("MatMul", {{"transpose_b", true}}, {{8, 16}, {2, 4, 32, 16}}), "m k, b0 b1 n k -> b0 b1 m n; k: sum");
  EXPECT_EQ(rule("Softmax", {{"axis", std::int64_t{-2}}}, {{2, 4, 8, 16}}), "a b c d -> a b c d; c: normalised");
  EXPECT_EQ(rule("Add", {}, {{32, 64, 96}, {32, 64, 96}}), "a b c, a b c -> a b c");
  EXPECT_EQ(rule("OneHot", {{"depth", std::int64_t{10}}}, {{64}}), "b -> b depth");
  EXPECT_EQ(rule("OneHot", {{"depth", std::int64_t{10}}, {"axis", std::int64_t{0}}}, {{64}}), "b -> depth b");
  EXPECT_EQ(rule("Transpose", {{"perm", List{1, 0}}}, {{128, 64}}), "a b -> b a");
}

TEST(Rule, ReadsAsTheCatalogueSays) {
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

TEST(Rule, ReshapeRefinesBothShapes) {
  const auto reshape = [](const Shape& from, const Shape& to) { return rule("Reshape", {{"shape", to}}, {from}); };
  EXPECT_EQ(reshape({32, 1024, 2304}, {32, 1024, 12, 192}), "a b (c d) -> a b c d");
  EXPECT_EQ(reshape({8, 16, 4}, {128, 4}), "a b c -> (a b) c");
  EXPECT_EQ(reshape({6, 4}, {2, 12}), "(a b) c -> a (b c)");
  EXPECT_EQ(reshape({2, 3, 5}, {2, 5, 3}), "a b d -> a c e; b: whole; c: whole; d: whole; e: whole");
  EXPECT_EQ(reshape({4, 6}, {6, 4}), "(a b) d -> (a c) e; b: whole; c: whole; d: whole; e: whole");
  EXPECT_EQ(reshape({1, 8}, {8, 1}), "1 a -> a 1");
  EXPECT_EQ(reshape({1}, {}), "1 -> ");
}

TEST(Rule, ParsesItsText) {
  const ShardingRule matmul = parse_rule("b s h, h f -> b s f", {{2, 4, 8}, {8, 16}});
  EXPECT_EQ(to_string(matmul), "b s h, h f -> b s f; h: sum");
  EXPECT_EQ(matmul.factors[3].size, 16);
  EXPECT_EQ(to_string(parse_rule("(b s) h, b -> b s h 1", {{12, 8}, {3}})), "(b s) h, b -> b s h 1");
  EXPECT_EQ(parse_rule("(b s) h, b -> b s h 1", {{12, 8}, {3}}).factors[1].size, 4);
  const auto fault = [](std::string_view text, const std::vector<Shape>& operands) -> std::string {
    try {
      parse_rule(text, operands);
    } catch (const InputError& error) {
      return error.diagnostics().front().message;
    }
    return "";
  };
  EXPECT_EQ(fault("a b, b c", {{2, 3}, {3, 4}}), "rule 'a b, b c' has no '->' between operands and results");
  EXPECT_EQ(fault("a b -> a", {{2, 3}, {3, 4}}), "rule 'a b -> a' is for 1 operands, found 2");
  EXPECT_EQ(fault("a b, b -> a", {{2, 3}, {4}}), "rule 'a b, b -> a': b is 3 in one place and 4 in another");
  EXPECT_EQ(fault("(a b) -> a", {{6}}), "rule '(a b) -> a': the sizes of a and b are not known");
  EXPECT_EQ(fault("(a b) c, a -> b c", {{6, 2}, {4}}),
            "rule '(a b) c, a -> b c': dimension 0 of operand 0 is 6, not a multiple of a = 4");
  EXPECT_EQ(fault("a -> a z", {{6}}), "rule 'a -> a z': the size of z is not known");
  EXPECT_EQ(fault("a a -> a", {{6, 6}}), "rule 'a a -> a': a stands twice in one tensor");
  for (const std::string_view text :
       {"", "->", "(", "a (", "a) -> b", "a,,b -> c", "é -> a", "1a -> a", "((a) -> a", "a -> b -> c", "a ? -> a"}) {
    fault(text, {{6}});  // an InputError or a rule, never a crash
  }
}

/// The halo of each device along one windowed dimension of operand 0: what it reads beyond its equal piece, before and
/// after; a negative width is left over.
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

// A valid 5x5 on 32 rows cut 4 ways: right 3, 1|2, 2|1, left 3.
TEST(Rule, HaloDependsOnTheDevice) {
  const Operation conv = make("Conv2D", {}, {{1, 1, 32, 32}, {1, 1, 5, 5}});
  EXPECT_EQ(halo(conv, 2, 4), (std::vector<Width>{{0, 3}, {1, 2}, {2, 1}, {3, 0}}));
  // Its gradient needs as much of dy, of 28 rows, the other way round.
  const Operation grad = make("Conv2DBackpropInput", {{"input_size", List{32, 32}}}, {{1, 1, 28, 28}, {1, 1, 5, 5}});
  EXPECT_EQ(halo(grad, 2, 4), (std::vector<Width>{{0, 1}, {3, 2}, {2, 3}, {1, 0}}));
}

// MindSpore's vectors of Conv2D: x [32, 16, 8, 8]. Where it exchanges rims, we read them; C15, which it refuses for the
// slices, needs none of the neighbour's rows and is legal here.
TEST(Rule, FollowsMindSporesConvolutionVectors) {
  const auto conv = [](std::int64_t out, std::int64_t kernel, std::int64_t stride, std::int64_t size,
                       const std::string& mode, std::int64_t group) {
    return make("Conv2D", {{"pad_mode", mode}, {"stride", List{stride}}, {"group", group}},
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

TEST(Rule, WindowInThePaddingReadsNothing) {
  const Window window{0, 1, 1, 1, 3, 3};
  const Interval reads = window_reads(window, 2, {0, 1, 10}, 5);
  EXPECT_EQ(reads.begin, reads.end);
}

TEST(Rule, FlopsCountContractions) {
  const auto all = [](const Operation& operation) {
    std::vector<std::int64_t> extents;
    for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
    return flops(operation, extents);
  };
  EXPECT_EQ(all(make("MatMul", {}, {{8, 4, 16}, {16, 32}})), 2.0 * 8 * 4 * 16 * 32);
  const double conv = all(make("Conv2D", {{"stride", List{2}}}, {{2, 4, 9, 9}, {8, 4, 3, 3}}));
  EXPECT_EQ(conv, 2.0 * 2 * 8 * 4 * 4 * 4 * 9);
  EXPECT_EQ(
      all(make("Conv2DBackpropInput", {{"stride", List{2}}, {"input_size", List{9, 9}}}, {{2, 8, 4, 4}, {8, 4, 3, 3}})),
      conv);
  EXPECT_EQ(
      all(make("Conv2DBackpropFilter", {{"stride", List{2}}, {"kernel_size", List{3}}}, {{2, 8, 4, 4}, {2, 4, 9, 9}})),
      conv);
  EXPECT_EQ(all(make("Gather", {}, {{512, 8}, {4}})), 0);
  EXPECT_EQ(all(make("Reshape", {{"shape", List{32}}}, {{4, 8}})), 0);
}

/// Whatever a model file says, an operator is made or refused: no crash, no overflow, no rule that does not fit.
TEST(Rule, HostileSizesAndAttributesAreRefused) {
  constexpr std::uint64_t kSeed = 11;
  Random random(kSeed);
  const List kNumbers = {0,
                         1,
                         2,
                         3,
                         4,
                         8,
                         -1,
                         -2,
                         1 << 20,
                         std::int64_t{1} << 40,
                         std::numeric_limits<std::int64_t>::max(),
                         std::numeric_limits<std::int64_t>::min()};
  const auto pick = [&] {
    return random.below(3) == 0 ? kNumbers[random.below(kNumbers.size())] : kNumbers[1 + random.below(4)];
  };
  const std::vector<std::string> kTexts = {
      "", "same", "pad", "valid", "f16", "i32", "NCHW", "ab,bc->ac", "ab->", "a,->", "->", "mean", "abcd,abed->abce"};
  const DataType kTypes[] = {DataType::kF32, DataType::kF32, DataType::kF32, DataType::kI32, DataType::kBool};
  std::size_t made = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::vector<OperatorType>& all = operator_catalogue();
    const OperatorType& type = all[random.below(all.size())];
    if (type.is_internal) continue;
    Attributes attributes;
    for (const AttributeSpec& spec : type.attributes) {
      if (spec.default_value && random.below(2) == 0) continue;
      switch (spec.kind) {
        case AttributeKind::kFlag:
          attributes[spec.name] = random.below(2) == 0;
          break;
        case AttributeKind::kInteger:
          attributes[spec.name] = pick();
          break;
        case AttributeKind::kNumber:
          attributes[spec.name] = static_cast<double>(pick()) / 2;
          break;
        case AttributeKind::kText:
          attributes[spec.name] = kTexts[random.below(kTexts.size())];
          break;
        case AttributeKind::kList: {
          List values(random.below(5));
          for (std::int64_t& value : values) value = pick();
          attributes[spec.name] = values;
        }
      }
    }
    std::vector<TensorType> operands;
    Shape shape;
    for (std::size_t i = 0; i < type.signature.operands.size() + random.below(2); ++i) {
      if (i == 0 || random.below(2) == 0) {
        shape.resize(random.below(5));
        for (std::int64_t& size : shape) size = random.below(20) == 0 ? pick() : kNumbers[1 + random.below(5)];
      }
      operands.push_back({shape, kTypes[random.below(5)]});
    }
    try {
      const Operation operation = make_operation(type, attributes, operands);
      EXPECT_FALSE(to_string(operation.rule).empty());
      ++made;
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(made, 500u) << "seed " << kSeed;
}

}  // namespace
}  // namespace shardplan
