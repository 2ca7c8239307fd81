#include "operators/rule_parser.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shardplan {
namespace {

TEST(RuleParserTest, ParsesTextAndNamesWhatIsWrong) {
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
  EXPECT_EQ(fault("a b -> a; c: sum", {{6, 2}}), "rule 'a b -> a; c: sum' has no factor 'c'");
  EXPECT_EQ(fault("a b -> a; b: prod", {{6, 2}}),
            "rule 'a b -> a; b: prod': factor b is 'prod'; expected sum, max, min, normalised or whole");
  for (const std::string_view text : {"", "->", "(", "a (", "a) -> b", "a,,b -> c", "é -> a", "1a -> a", "((a) -> a",
                                      "a -> b -> c", "a ? -> a", "a -> a;", "a -> a; :", "a -> a; a:"}) {
    fault(text, {{6}});  // an InputError or a rule, never a crash
  }
}

TEST(RuleParserTest, TakesSizesFromResultsAndKindsFromTheText) {
  const std::string text = "t e, t k -> e slot, t; e: whole; k: max";
  const ShardingRule rule = parse_rule(text, {{8, 4}, {8, 2}}, {{4, 16}, {8}});
  EXPECT_EQ(to_string(rule), text);
  EXPECT_EQ(rule.factors[*rule.find("slot")].size, 16);
  EXPECT_EQ(to_string(parse_rule("n c h, c -> n c h; n, h: normalised", {{8, 4, 2}, {4}})),
            "n c h, c -> n c h; n: normalised; h: normalised");
}

}  // namespace
}  // namespace shardplan
