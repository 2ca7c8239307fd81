#include "model/syntax/settings_table.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

StrategyLine level(const std::string& name, int value, int line) {
  StrategyLine result;
  result.name = {name, {"m.yaml", line, 1}};
  result.settings.level = {value, {"m.yaml", line, 10}};
  return result;
}

TEST(SettingsTableTest, AStarIsOnePartOfAName) {
  EXPECT_TRUE(matches_name("layers.*.attn", "layers.3.attn"));
  EXPECT_TRUE(matches_name("*", "layers"));
  EXPECT_FALSE(matches_name("layers.*", "layers.3.attn"));
  EXPECT_FALSE(matches_name("layers.*.attn", "layers.3"));
  EXPECT_FALSE(matches_name("lay*.3", "layers.3"));
}

TEST(SettingsTableTest, NamesBeatStarsAndOptionsBeatTheFile) {
  SettingsTable table({level("a.*", 0, 1), level("a.b", 1, 2)}, {level("a.c", 2, 0)});
  std::vector<Diagnostic> faults;
  EXPECT_EQ(table.find("a.x", {}, faults).level->value, 0);
  EXPECT_EQ(table.find("a.b", {}, faults).level->value, 1);
  EXPECT_EQ(table.find("a.c", {}, faults).level->value, 2);
  Settings beside;
  beside.level = {1, {"m.yaml", 9, 1}};
  EXPECT_EQ(table.find("a.x", beside, faults).level->value, 1);
  EXPECT_EQ(table.find("a.c", beside, faults).level->value, 2);
  EXPECT_FALSE(table.find("b", {}, faults).level);
  EXPECT_TRUE(faults.empty());
}

TEST(SettingsTableTest, LinesOfEqualWeightMustAgree) {
  SettingsTable table({level("a.*", 0, 1), level("*.b", 1, 2)}, {});
  std::vector<Diagnostic> faults;
  table.find("a.b", {}, faults);
  table.find("a.b", {}, faults);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].message, "a.b: level is given on line 1 and, differently, on line 2");
}

TEST(SettingsTableTest, APatternThatAllSayOtherwiseThemselvesHasNoEffect) {
  SettingsTable table({level("a.*", 0, 1), level("b.*", 0, 2), level("b.x", 1, 3)}, {});
  std::vector<Diagnostic> faults;
  Settings beside;
  beside.level = {1, {"m.yaml", 9, 1}};
  table.find("a.x", beside, faults);
  table.find("b.x", {}, faults);
  EXPECT_EQ(table.overridden(), (std::vector<std::string>{
                                    "line 1: level of a.* has no effect: each that it matches says otherwise itself",
                                    "line 2: level of b.* has no effect: each that it matches says otherwise itself"}));
  table.find("a.y", {}, faults);  // one that says nothing
  table.find("b.y", beside, faults);
  EXPECT_EQ(
      table.overridden(),
      (std::vector<std::string>{"line 2: level of b.* has no effect: each that it matches says otherwise itself"}));
  EXPECT_TRUE(faults.empty());
}

TEST(SettingsTableTest, LinesThatNothingAskedForAreFaults) {
  SettingsTable table({level("layers.*.attn", 0, 1), level("used", 0, 2)}, {});
  std::vector<Diagnostic> faults;
  table.find("used", {}, faults);
  table.check_used({"used", "layers.0.att", "layers.1.att"}, faults);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].message, "no operator, block or tensor 'layers.*.attn'; did you mean 'layers.*.att'?");
}

}  // namespace
}  // namespace shardplan
