#include "operators/operator_type.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "operators/catalogue.h"
#include "tests/support/operations.h"

namespace shardplan {
namespace {

using List = std::vector<std::int64_t>;

std::string fault(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  try {
    operation_of(type, attributes, shapes);
  } catch (const InputError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

TEST(OperatorTypeTest, InfersResultAndRuleOfMatMul) {
  const Operation op = operation_of("MatMul", {{"transpose_b", true}}, {{8, 4, 16}, {32, 16}});
  EXPECT_EQ(op.results, (std::vector<TensorType>{{{8, 4, 32}, DataType::kF32}}));
  EXPECT_EQ(to_string(op.rule), "b m k, n k -> b m n; k: sum");
  EXPECT_FALSE(op.flag("transpose_a"));
}

TEST(OperatorTypeTest, NamesWhatIsWrong) {
  EXPECT_EQ(fault("Softmax", {{"axis", std::int64_t{4}}}, {{2, 3, 4}}), "axis 4 of Softmax is outside [-3, 3)");
  EXPECT_EQ(fault("Softmax", {{"axes", std::int64_t{1}}}, {{2, 3}}),
            "Softmax has no attribute 'axes'; did you mean 'axis'?");
  EXPECT_EQ(fault("Transpose", {}, {{2, 3}}),
            "Transpose needs the attribute perm (for each dimension of the result the one of x)");
  EXPECT_EQ(fault("Softmax", {{"axis", true}}, {{2, 3}}), "attribute axis of Softmax is true; expected an integer");
  EXPECT_EQ(fault("MatMul", {}, {{2, 3}}), "MatMul takes 2 inputs (x1, x2), found 1");
  EXPECT_EQ(fault("MatMul", {}, {{2, 3}, {4, 5}}),
            "MatMul: the summed dimensions of [2, 3] and [4, 5] differ: 3 and 4");
  EXPECT_EQ(fault("Add", {}, {{2, 3}, {4, 3}}), "Add: shapes [2, 3] and [4, 3] do not fit: dimension 0 is 2 and 4");
  EXPECT_EQ(fault("Tile", {{"multiples", std::vector<std::int64_t>{1 << 30, 1 << 30}}}, {{1 << 20, 1 << 20}}),
            "Tile: result [1125899906842624, 1125899906842624] has more bytes than 64 bits can count");
  EXPECT_EQ(fault("Reshape", {{"shape", std::vector<std::int64_t>{5, -1}}}, {{4, 6}}),
            "Reshape: cannot make [5, -1] of [4, 6], which has 24 elements");
}

TEST(OperatorTypeTest, ElementwiseOperatorsPromote) {
  const auto type_of = [](const TensorType& a, const TensorType& b) {
    return make_operation(*find_operator_type("Add"), {}, {a, b}).results[0].dtype;
  };
  const Shape vector = {4}, scalar = {};
  EXPECT_EQ(type_of({vector, DataType::kBF16}, {vector, DataType::kF32}), DataType::kF32);
  EXPECT_EQ(type_of({vector, DataType::kF64}, {vector, DataType::kF16}), DataType::kF64);
  EXPECT_EQ(type_of({vector, DataType::kF16}, {vector, DataType::kBF16}), DataType::kF32) << "neither holds the other";
  EXPECT_EQ(type_of({scalar, DataType::kF32}, {vector, DataType::kBF16}), DataType::kBF16) << "scalars give way";
  EXPECT_EQ(type_of({scalar, DataType::kF32}, {vector, DataType::kI32}), DataType::kF32);
  EXPECT_THROW(type_of({vector, DataType::kI32}, {vector, DataType::kF32}), InputError);
}

TEST(OperatorTypeTest, ReadsSignatures) {
  const Signature signature = "params, indices... -> y, mask";
  EXPECT_EQ(signature.operands, (std::vector<std::string>{"params", "indices..."}));
  EXPECT_EQ(signature.results, (std::vector<std::string>{"y", "mask"}));
  EXPECT_TRUE(Signature(" -> y").operands.empty());
}

TEST(OperatorTypeTest, AddsTheGroupsThatPassPartialOperandsOn) {
  const Operation add = operation_of("Add", {}, {{4, 8}, {4, 8}});
  EXPECT_EQ(add.rule.linear, (std::vector<std::vector<std::uint32_t>>{{0, 1}}));
  EXPECT_EQ(add.rule.monotone, (std::vector<std::vector<std::uint32_t>>{{0}, {1}}));
  const Operation concat = operation_of("Concat", {}, {{4, 8}, {4, 8}, {4, 8}});
  EXPECT_EQ(concat.rule.linear, (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}}));
  EXPECT_EQ(concat.rule.monotone, (std::vector<std::vector<std::uint32_t>>{{0}, {1}, {2}, {0, 1, 2}}));
  EXPECT_EQ(operation_of("Einsum", {{"equation", std::string("ab,bc->ac")}}, {{4, 8}, {8, 2}}).rule.linear,
            (std::vector<std::vector<std::uint32_t>>{{0}, {1}}));
}

TEST(OperatorTypeTest, FlopsCountContractions) {
  const auto all = [](const Operation& operation) {
    std::vector<std::int64_t> extents;
    for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
    return flops(operation, extents);
  };
  EXPECT_EQ(all(operation_of("MatMul", {}, {{8, 4, 16}, {16, 32}})), 2.0 * 8 * 4 * 16 * 32);
  const double conv = all(operation_of("Conv2D", {{"stride", List{2}}}, {{2, 4, 9, 9}, {8, 4, 3, 3}}));
  EXPECT_EQ(conv, 2.0 * 2 * 8 * 4 * 4 * 4 * 9);
  EXPECT_EQ(all(operation_of("Conv2DBackpropInput", {{"stride", List{2}}, {"input_size", List{9, 9}}},
                             {{2, 8, 4, 4}, {8, 4, 3, 3}})),
            conv);
  EXPECT_EQ(all(operation_of("Conv2DBackpropFilter", {{"stride", List{2}}, {"kernel_size", List{3}}},
                             {{2, 8, 4, 4}, {2, 4, 9, 9}})),
            conv);
  EXPECT_EQ(all(operation_of("Transpose", {{"perm", List{1, 0}}}, {{512, 8}})), 0);
  EXPECT_EQ(all(operation_of("Reshape", {{"shape", List{32}}}, {{4, 8}})), 0);
}

/// Whatever a model file contains, an operator is either made or rejected: no crash, no overflow, no rule that does not
/// fit.
TEST(OperatorTypeTest, HostileSizesAndAttributesAreRefused) {
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
