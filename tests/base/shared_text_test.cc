#include "base/shared_text.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

namespace shardplan {
namespace {

TEST(SharedTextTest, CopiesAreOneText) {
  const SharedText name = "layers.3.attn.qkv";
  const SharedText copy = name;
  EXPECT_EQ(name.c_str(), copy.c_str());
  EXPECT_EQ(copy, "layers.3.attn.qkv");
  EXPECT_EQ(sizeof(SharedText), 8U);
}

TEST(SharedTextTest, EqualTextsAreEqualWhereverTheyStand) {
  const SharedText one = std::string("same"), other = "same";
  EXPECT_NE(one.c_str(), other.c_str());
  EXPECT_EQ(one, other);
  EXPECT_EQ(one, std::string("same"));
  EXPECT_EQ(SharedText(), SharedText(""));
  EXPECT_TRUE(SharedText().empty());
  EXPECT_LT(SharedText("a"), SharedText("b"));
  std::unordered_set<SharedText> texts{one};
  EXPECT_FALSE(texts.insert(other).second);
}

TEST(SharedTextTest, WhatIsAddedIsNotAddedToCopies) {
  SharedText longer = "loss";
  const SharedText before = longer;
  longer += ".mean";
  EXPECT_EQ(longer, "loss.mean");
  EXPECT_EQ(before, "loss");
  EXPECT_EQ(before + ".sum", "loss.sum");
  EXPECT_EQ("grad." + before, "grad.loss");
  EXPECT_EQ(fmt::format("{:>6}|", before), "  loss|");
}

}  // namespace
}  // namespace shardplan
