#include "cli/commands/planning_options.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "tests/support/text.h"

namespace shardplan {
namespace {

/// Gives an option the value 1, or "1".
void give_one(const Option& option) {
  std::visit(
      [](auto* target) {
        using Held = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<Held, std::vector<std::string>>) {
          target->push_back("1");
        } else if constexpr (std::is_same_v<Held, std::string> || std::is_same_v<Held, std::optional<std::string>>) {
          *target = "1";
        } else {
          *target = 1;
        }
      },
      option.target);
}

TEST(PlanningOptionsTest, EveryOptionIsKnownToBeGiven) {
  PlanningArguments arguments;
  EXPECT_TRUE(given_options(arguments).empty());
  std::vector<std::string> names;
  for (const OptionGroup& group : planning_options(arguments)) {
    for (const Option& option : group.options) {
      give_one(option);
      names.push_back(option.name);
    }
  }
  EXPECT_FALSE(names.empty());
  const std::vector<GivenOption> given = given_options(arguments);
  EXPECT_EQ(names_of(given), names);
  for (const GivenOption& one : given) EXPECT_EQ(one.value, "1") << one.name;
}

TEST(PlanningOptionsTest, ARepeatedOptionIsNamedOnce) {
  PlanningArguments arguments;
  arguments.dims = {"B=1", "C=2"};
  arguments.memory_slack = 0.5;
  const std::vector<GivenOption> given = given_options(arguments);
  ASSERT_EQ(given.size(), 3u);
  EXPECT_EQ(given[1].value, "C=2");
  EXPECT_EQ(given[1].role, PlanningRole::kJob);
  EXPECT_EQ(given[2].value, "0.5");
  EXPECT_EQ(given[2].role, PlanningRole::kSearch);
  EXPECT_EQ(names_of(given), (std::vector<std::string>{"--dim", "--memory-slack"}));
}

TEST(PlanningOptionsTest, OnlyCommandsWithOnePlanSaveStrategies) {
  PlanningArguments arguments;
  const auto has_saved = [&](SavesStrategies saves) {
    for (const OptionGroup& group : planning_options(arguments, saves)) {
      for (const Option& option : group.options) {
        if (option.name == "--strategy-ckpt-save-file") return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(has_saved(SavesStrategies::kYes));
  EXPECT_FALSE(has_saved(SavesStrategies::kNo));
}

TEST(PlanningOptionsTest, ACapacityIsAtLeastOneByte) {
  EXPECT_EQ(parse_capacity("16GiB"), std::int64_t{16} << 30);
  EXPECT_EQ(error_of([] { parse_capacity("0B"); }),
            "error: --capacity: expected at least one byte, as 16GiB; found 0B");
  EXPECT_TRUE(error_of([] { parse_capacity("16"); }).starts_with("error: --capacity: '16' has no unit; expected B"));
  EXPECT_TRUE(error_of([] { parse_capacity(""); }).starts_with("error: --capacity: "));
}

}  // namespace
}  // namespace shardplan
