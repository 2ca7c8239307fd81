#include "cli/command_table.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(CommandTableTest, OptionsKnowTheirKindAndTheirDefault) {
  std::string model = "mlp", mode = "bounded";
  std::optional<int> level;
  double share = 0.5;
  std::int64_t count = 8;
  bool json = false;
  std::vector<std::string> dims;
  const Option subject = argument("MODEL", &model, "a model");
  EXPECT_TRUE(subject.is_argument() && subject.is_required && !subject.is_flag());
  EXPECT_EQ(subject.default_text, "mlp");
  const Option named = option("--mode", "MODE", &mode, "a mode", one_of({"bounded", "free"}));
  EXPECT_FALSE(named.is_argument() || named.is_required || named.is_flag() || named.is_repeatable());
  EXPECT_EQ(named.check.words, (std::vector<std::string>{"bounded", "free"}));
  EXPECT_EQ(named.default_text, "bounded");
  EXPECT_EQ(option("--share", "S", &share, "").default_text, "0.5");
  EXPECT_EQ(option("--count", "N", &count, "").default_text, "8");
  EXPECT_EQ(option("--level", "L", &level, "").default_text, "");  // an empty default is not shown
  EXPECT_EQ(option("--level", "L", &level, "").with_default("the model's").default_text, "the model's");
  const Option switched = flag("--json", json, "as JSON");
  EXPECT_TRUE(switched.is_flag());
  EXPECT_EQ(switched.default_text, "");
  EXPECT_TRUE(option("--dim", "D", &dims, "").is_repeatable());
}

TEST(CommandTableTest, ChangedOptionsAreCopies) {
  std::string value;
  const Option plain = option("--file", "FILE", &value, "");
  EXPECT_TRUE(plain.required().is_required);
  EXPECT_FALSE(plain.required().optional().is_required);
  EXPECT_EQ(plain.completed_by(Completion::kFile).completion, Completion::kFile);
  EXPECT_FALSE(plain.is_required);
  EXPECT_EQ(plain.completion, Completion::kNothing);
}

TEST(CommandTableTest, ChecksSayWhatAValueMustBe) {
  EXPECT_EQ(from_to(0, 2).least, 0.0);
  EXPECT_EQ(from_to(0, 2).most, 2.0);
  EXPECT_EQ(at_least(1).least, 1.0);
  EXPECT_FALSE(at_least(1).most);
  EXPECT_TRUE(positive().is_positive);
  EXPECT_FALSE(positive().least);
}

TEST(CommandTableTest, CommandsAreFoundByTheirName) {
  std::string a, b, c;
  Command plan;
  plan.name = "plan";
  plan.options = {{"", {argument("A", &a, "")}}, {"More", {option("--b", "B", &b, ""), option("--c", "C", &c, "")}}};
  Program program;
  program.commands = {plan};
  ASSERT_NE(program.find("plan"), nullptr);
  EXPECT_EQ(program.find("pla"), nullptr);
  EXPECT_EQ(program.find(""), nullptr);
  std::string names;
  for (const Option& option : program.find("plan")->all_options()) names += option.name + " ";
  EXPECT_EQ(names, "A --b --c ");
}

}  // namespace
}  // namespace shardplan
