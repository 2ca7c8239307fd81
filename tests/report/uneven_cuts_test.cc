#include "report/metrics/uneven_cuts.h"

#include <gtest/gtest.h>

#include "tests/support/hand_plan.h"

namespace shardplan {
namespace {

/// y = x w of [10, 48] and [48, 15] on x=2, y=4, sharded by the given strategies.
Plan product_cut(const std::vector<std::pair<std::string, const char*>>& cuts) {
  HandGraph graph("g");
  const TensorId x = graph.input("x", {10, 48});
  const TensorId w = graph.parameter("w", {48, 15});
  const TensorId y = graph.op("y", "MatMul", {x, w});
  Plan plan;
  plan.graph = std::make_shared<const OperatorGraph>(graph.build(y));
  plan.mesh = DeviceMesh::parse("x=2, y=4");
  const ShardingRule& rule = plan.graph->operation(OperatorId(0)).rule;
  std::vector<std::vector<AxisRef>> factors(rule.factors.size());
  for (const auto& [factor, axes] : cuts) factors[*rule.find(factor)] = parse_axes(axes, plan.mesh);
  Strategy strategy;
  for (std::vector<AxisRef>& factor : factors) strategy.factors.push_back(std::move(factor));
  plan.strategies.push_back(std::move(strategy));
  return plan;
}

std::vector<std::string> texts(const Plan& plan) {
  std::vector<std::string> found;
  for (const UnevenCut& cut : uneven_cuts(plan, OperatorId(0))) found.push_back(to_string(cut));
  return found;
}

TEST(UnevenCutsTest, BuffersHaveTheLargestPiece) {
  EXPECT_TRUE(texts(product_cut({})).empty());
  EXPECT_TRUE(texts(product_cut({{"m", "{x}"}, {"k", "{y}"}})).empty());
  EXPECT_EQ(texts(product_cut({{"m", "{y}"}})),
            std::vector<std::string>{"m of 10 in 4 pieces of 3, 16.7 % of them padding"});
  EXPECT_EQ(texts(product_cut({{"m", "{y}"}, {"n", "{x}"}})),
            (std::vector<std::string>{"m of 10 in 4 pieces of 3, 16.7 % of them padding",
                                      "n of 15 in 2 pieces of 8, 6.2 % of them padding"}));
  const UnevenCut cut{OperatorId(0), "v", 50257, 8, 6283};
  EXPECT_NEAR(cut.waste(), 7.0 / 50264, 1e-12);
}

TEST(UnevenCutsTest, TheLineNamesTheMostPadded) {
  EXPECT_EQ(uneven_line(product_cut({{"m", "{x}"}})), "");
  EXPECT_EQ(uneven_line(product_cut({{"m", "{y}"}, {"n", "{x}"}})),
            "  uneven      1 operator in unequal pieces; most padding in y:\n"
            "              m of 10 in 4 pieces of 3, 16.7 % of them padding\n");
}

// 8 devices: 48 can be split into 8 equal pieces; 10 and 15 have at least 8 positions but no 8 equal pieces.
TEST(UnevenCutsTest, SaysWhatSizesKeepFromAllDevices) {
  const std::vector<std::string> lines = cuts_that_do_not_fit(product_cut({}), OperatorId(0));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].substr(0, 8), "m of 10 ");
  EXPECT_EQ(lines[1].substr(0, 8), "n of 15 ");
}

}  // namespace
}  // namespace shardplan
