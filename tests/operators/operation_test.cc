#include "operators/operation.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

Operation make(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  std::vector<TensorType> operands;
  for (const Shape& shape : shapes) operands.push_back({shape, DataType::kF32});
  return make_operation(*find_operator_type(type), attributes, operands);
}

std::string fault(const std::string& type, const Attributes& attributes, const std::vector<Shape>& shapes) {
  try {
    make(type, attributes, shapes);
  } catch (const InputError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

TEST(Operation, InfersResultAndRuleOfMatMul) {
  const Operation op = make("MatMul", {{"transpose_b", true}}, {{8, 4, 16}, {32, 16}});
  EXPECT_EQ(op.results, (std::vector<TensorType>{{{8, 4, 32}, DataType::kF32}}));
  EXPECT_EQ(to_string(op.rule), "b m k, n k -> b m n; k: sum");
  EXPECT_FALSE(op.flag("transpose_a"));
}

TEST(Operation, NamesWhatIsWrong) {
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

TEST(Operation, WritesAttributesAsMindSporeDoes) {
  EXPECT_EQ(to_string(Attribute(true)), "true");
  EXPECT_EQ(to_string(Attribute(std::vector<std::int64_t>{1, 2})), "(1, 2)");
  EXPECT_EQ(to_string(Attribute(0.5)), "0.5");
}

}  // namespace
}  // namespace shardplan
