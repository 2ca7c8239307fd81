#include "model/syntax/dim_scope.h"

#include <gtest/gtest.h>

#include "tests/support/text.h"

namespace shardplan {
namespace {

BlockDim dim(const std::string& name, const std::string& expression) {
  BlockDim made;
  made.name.text = name;
  if (expression == "?") {
    made.kind = BlockDim::Kind::kInferred;
  } else {
    made.expression = Expression::parse(expression);
  }
  return made;
}

class DimScopeTest : public testing::Test {
 protected:
  DimScopeTest() { numbers_.dims = {{"B", 8}, {"H", 48}, {"heads", 12}}; }
  std::int64_t whole(DimScope& scope, const std::string& text) { return scope.whole(Expression::parse(text)); }

  FileNumbers numbers_;
};

TEST_F(DimScopeTest, OwnDimsStandInAnyOrderAndHideTheFiles) {
  DimScope scope(numbers_);
  const std::vector<BlockDim> own = {dim("total", "each*H"), dim("each", "B+1"), dim("H", "7")};
  scope.declare(own);
  EXPECT_EQ(whole(scope, "total"), 9 * 7);
  EXPECT_EQ(whole(scope, "H"), 7);
  EXPECT_EQ(whole(scope, "heads"), 12);
  EXPECT_DOUBLE_EQ(scope.real(Expression::parse("1/(2*each)")), 1.0 / 18);
  EXPECT_TRUE(scope.is_own("H"));
  EXPECT_FALSE(scope.is_own("B"));
  // Of the file's dims only what was read; its H comes after the block's.
  EXPECT_EQ(numbers_.used_dims, (std::set<std::string>{"B", "heads"}));
}

TEST_F(DimScopeTest, TheFirstBindingHolds) {
  DimScope scope(numbers_);
  const std::vector<BlockDim> own = {dim("S", "?")};
  scope.declare(own);
  EXPECT_TRUE(scope.is_inferred("S"));
  EXPECT_FALSE(scope.is_inferred("B"));
  scope.bind("S", 5);
  scope.bind("S", 6);
  EXPECT_EQ(whole(scope, "2*S"), 10);
}

TEST_F(DimScopeTest, WrittenSizesMayStandForOthers) {
  numbers_.other_literals = {{64, 4}};
  DimScope scope(numbers_);
  EXPECT_EQ(whole(scope, "64*heads"), 4 * 12);
  EXPECT_EQ(whole(scope, "15"), 15);  // counts copies
  EXPECT_EQ(whole(scope, "16"), 16);  // is recorded, and means itself
  EXPECT_EQ(scope.count(Expression::parse("64")), 64);
  EXPECT_EQ(numbers_.literals, (std::set<std::int64_t>{16, 64}));
  FileNumbers others = numbers_;
  others.literals.clear();
  DimScope built_in(others, true);
  EXPECT_EQ(built_in.whole(Expression::parse("64")), 64);
  EXPECT_TRUE(others.literals.empty());
}

TEST_F(DimScopeTest, SaysWhatIsWrong) {
  DimScope scope(numbers_);
  const std::vector<BlockDim> own = {dim("a", "b+1"), dim("b", "c"), dim("c", "a"), dim("none", "B-8"), dim("S", "?")};
  scope.declare(own);
  const auto fault = [&](const std::string& text) { return error_of([&] { whole(scope, text); }); };
  EXPECT_EQ(fault("head"), "error: no dim 'head' here; did you mean 'heads'?");
  EXPECT_EQ(fault("Quite"), "error: no dim 'Quite' here");
  EXPECT_EQ(fault("a"), "error: dim a depends on itself");
  EXPECT_EQ(fault("b"), "error: dim b depends on itself");
  EXPECT_EQ(fault("none"), "error: dim none is 0; expected at least 1");
  EXPECT_EQ(fault("S"), "error: dim S cannot be inferred: no input has it as a dimension of its own");
  EXPECT_EQ(fault("rank").substr(0, 56), "error: rank is known only where a model is written per d");
  EXPECT_EQ(whole(scope, "B"), 8);  // an error leaves the scope unchanged
}

TEST_F(DimScopeTest, ChainsOfDimsHaveALimit) {
  std::vector<BlockDim> chain;
  for (int i = 0; i < 300; ++i) chain.push_back(dim("d" + std::to_string(i), "d" + std::to_string(i + 1)));
  chain.push_back(dim("d300", "3"));
  DimScope scope(numbers_);
  scope.declare(chain);
  EXPECT_EQ(error_of([&] { whole(scope, "d0"); }), "error: dims that depend on each other more than 200 deep");
  EXPECT_EQ(whole(scope, "d150"), 3);
}

}  // namespace
}  // namespace shardplan
