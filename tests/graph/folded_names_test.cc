#include "graph/folded_names.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(FoldedNamesTest, IndicesBecomeStars) {
  EXPECT_EQ(folded_name("layers.3.attn.qkv.weight"), "layers.*.attn.qkv.weight");
  EXPECT_EQ(folded_name("a.0.b.12"), "a.*.b.*");
  EXPECT_EQ(folded_name("norm_2.x3"), "norm_2.x3");
  EXPECT_EQ(folded_name(""), "");
}

TEST(FoldedNamesTest, TheTopBlockKeepsItsIndex) {
  EXPECT_EQ(top_block("layers.3.attn.qkv.weight"), "layers.3");
  EXPECT_EQ(top_block("wte.gather"), "wte");
  EXPECT_EQ(top_block("head"), "head");
}

TEST(FoldedNamesTest, HoldersAreTwoLevelsInsideARepeat) {
  EXPECT_EQ(holder_block("layers.3.attn.qkv.matmul"), "layers.*.attn");
  EXPECT_EQ(holder_block("layers.3.gelu"), "layers.*");
  EXPECT_EQ(holder_block("wte.gather"), "wte");
  EXPECT_EQ(holder_block("head"), "head");
}

TEST(FoldedNamesTest, WithinEndsAtADot) {
  EXPECT_TRUE(is_within("a.b", "a"));
  EXPECT_TRUE(is_within("a", "a"));
  EXPECT_FALSE(is_within("ab", "a"));
}

TEST(FoldedNamesTest, RunsJoinEqualNeighbours) {
  const auto names_of = [](const std::vector<NameRun>& runs) {
    std::vector<std::string> names;
    for (const NameRun& run : runs) names.push_back(run.name);
    return names;
  };
  const std::vector<std::string> names{"wte", "layers.0", "layers.1", "layers.2", "head"};
  EXPECT_EQ(names_of(fold_runs(names, {"a", "b", "b", "b", "b"})),
            (std::vector<std::string>{"wte", "layers.*", "head"}));
  EXPECT_EQ(names_of(fold_runs(names, {"a", "b", "c", "c", "c"})),
            (std::vector<std::string>{"wte", "layers.0", "layers.1-2", "head"}));
  EXPECT_EQ(fold_runs(names, {"a", "b", "c", "c", "c"})[2].count, 2U);
}

}  // namespace
}  // namespace shardplan
