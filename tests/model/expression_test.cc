#include "model/syntax/expression.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

std::int64_t lookup(std::string_view name) {
  if (name == "H") return 768;
  if (name == "heads") return 12;
  if (name == "big") return std::int64_t{1} << 40;
  throw InputError({}, "no dim '{}'", name);
}

std::string value_of(const std::string& text) {
  try {
    return std::to_string(Expression::parse(text).evaluate(lookup));
  } catch (const InputError& error) {
    return error.diagnostics()[0].message;
  }
}

TEST(ExpressionTest, WholeNumbersAreExact) {
  const std::pair<const char*, const char*> cases[] = {
      {"4*H", "3072"},
      {"H/heads", "64"},
      {" 3 * ( H / heads + 1 ) ", "195"},
      {"H - 2*heads/3 - 1", "759"},
      {"-1", "-1"},
      {"2*-3", "-6"},
      {"10-3-2", "5"},
      {"96/8/2", "6"},
      {"H/5", "H/5 is not whole: 768 / 5"},
      {"H/0", "H/0 divides by 0"},
      {"H/(heads-12)", "H/(heads-12) divides by 0"},
      {"big*big", "big*big is beyond 64 bits"},
      {"9223372036854775807+1", "9223372036854775807+1 is beyond 64 bits"},
      {"9223372036854775808", "'9223372036854775808' is not an expression: a number beyond 64 bits"},
      {"(-9223372036854775807-1)/-1", "(-9223372036854775807-1)/-1 is beyond 64 bits"},
      {"D", "no dim 'D'"},
      {"010", "'010' is not an expression: 010 begins with 0; numbers are decimal"},
      {"0x10", "'0x10' is not an expression: 'x' after a number; a product needs '*'"},
      {"4H", "'4H' is not an expression: 'H' after a number; a product needs '*'"},
      {"1.5", "1.5 is not whole; expected a whole number"},
      {"1e3", "1e3 is not whole; expected a whole number"},
      {"sqrt(4)", "sqrt(4) is not whole; expected a whole number"},
      {"", "'' is not an expression: it is empty"},
      {"4*", "'4*' is not an expression: it ends too early"},
      {"(4", "'(4' is not an expression: ')' is missing"},
      {"4)", "'4)' is not an expression: ')' was not expected"},
      {"7//2", "3"},
      {"-7//2", "-4"},
      {"7//-2", "-4"},
      {"-7%4", "1"},
      {"7%-4", "-1"},
      {"8%4", "0"},
      {"(-9223372036854775807-1)//-1", "(-9223372036854775807-1)//-1 is beyond 64 bits"},
      {"(-9223372036854775807-1)%-1", "0"},
      {"H%(heads-12)", "H%(heads-12) divides by 0"},
      {"H//0", "H//0 divides by 0"},
      {"H/ /2", "'H/ /2' is not an expression: '/' was not expected"},
      {"H$2", "'H$2' is not an expression: '$' was not expected"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(value_of(text), expected) << text;
}

TEST(ExpressionTest, RealNumbersAreRoundedOncePerOperation) {
  EXPECT_EQ(Expression::parse("1/sqrt(H/heads)").evaluate_real(lookup), 0.125);
  EXPECT_EQ(Expression::parse("6e-4").evaluate_real(lookup), 6e-4);
  EXPECT_EQ(Expression::parse("-1e-24").evaluate_real(lookup), -1e-24);
  EXPECT_EQ(Expression::parse(".5").evaluate_real(lookup), 0.5);
  EXPECT_THROW(Expression::parse("sqrt(-1)").evaluate_real(lookup), InputError);
  EXPECT_THROW(Expression::parse("1e308*1e308").evaluate_real(lookup), InputError);
}

TEST(ExpressionTest, KnowsItsNames) {
  EXPECT_EQ(Expression::parse("a*(b+a)").names(), (std::vector<std::string>{"a", "b", "a"}));
  EXPECT_EQ(Expression::parse("H").single_name(), "H");
  EXPECT_EQ(Expression::parse("-7").literal(), -7);
  EXPECT_EQ(Expression::parse("7+0").literal(), std::nullopt);
}

TEST(ExpressionTest, DepthAndLengthAreLimited) {
  EXPECT_THROW(Expression::parse(std::string(500, '(') + "1" + std::string(400, ')')), InputError);
  EXPECT_THROW(Expression::parse(std::string(900, '-') + "1"), InputError);
  EXPECT_THROW(Expression::parse(std::string(100000, '1')), InputError);
}

}  // namespace
}  // namespace shardplan
