#include "cli/command_line.h"

#include <gtest/gtest.h>

#include "cli/help.h"

namespace shardplan {
namespace {

/// A program with one command that has an option of each kind.
struct Values {
  std::string model;
  std::optional<int> level;
  double share = 0.5;
  std::optional<double> seconds;
  std::uint64_t seed = 0;
  std::string mode = "bounded";
  std::vector<std::string> dims;
  bool json = false;
};

Program program_of(Values& values) {
  Command plan;
  plan.name = "plan";
  plan.topic = "Plan";
  plan.summary = "Plan a model";
  plan.examples = {{"a.yaml", "one model"}};
  plan.options = {{"", {argument("MODEL", &values.model, "a model file")}},
                  {"How",
                   {option("--level", "LEVEL", &values.level, "the objective", from_to(0, 2)),
                    option("--share", "SHARE", &values.share, "a share", from_to(0, 1)),
                    option("--seconds", "SECONDS", &values.seconds, "a limit", positive()),
                    option("--seed", "N", &values.seed, "a seed"),
                    option("--mode", "MODE", &values.mode, "a mode", one_of({"bounded", "unbounded"})),
                    option("--dim", "NAME=SIZE", &values.dims, "a size"), flag("--json", values.json, "as JSON")}}};
  plan.action = [] { return 0; };
  Program program;
  program.name = "prog";
  program.version = "1.2";
  program.summary = "What it is for.";
  program.commands = {plan};
  program.exit_codes = {{0, "done"}};
  return program;
}

Values read(const std::vector<std::string>& arguments) {
  Values values;
  EXPECT_TRUE(read_command_line(program_of(values), arguments).action);
  return values;
}

/// The error printed for a wrong command line, without the usage lines below it.
std::string faults_of(const std::vector<std::string>& arguments) {
  Values values;
  try {
    read_command_line(program_of(values), arguments);
  } catch (const UsageError& error) {
    const std::string text = error.what();
    return text.substr(0, std::min(text.find("\nusage:"), text.find("\n\n")));
  }
  return "none";
}

TEST(CommandLineTest, SetsTheTargets) {
  const Values values = read({"plan", "--level", "1", "a.yaml", "--share=0.25", "--dim", "B=1", "--dim", "C=[2, 3]",
                              "--mode", "unbounded", "--seconds", "1e-3", "--seed", "18446744073709551615", "--json"});
  EXPECT_EQ(values.model, "a.yaml");
  EXPECT_EQ(values.level, 1);
  EXPECT_EQ(values.share, 0.25);
  EXPECT_EQ(values.seconds, 1e-3);
  EXPECT_EQ(values.seed, 18446744073709551615u);
  EXPECT_EQ(values.mode, "unbounded");
  EXPECT_EQ(values.dims, (std::vector<std::string>{"B=1", "C=[2, 3]"}));
  EXPECT_TRUE(values.json);
}

TEST(CommandLineTest, LeavesWhatIsNotGiven) {
  const Values values = read({"plan", "a.yaml"});
  EXPECT_FALSE(values.level);
  EXPECT_EQ(values.share, 0.5);
  EXPECT_EQ(values.mode, "bounded");
  EXPECT_FALSE(values.json);
}

TEST(CommandLineTest, TakesAValueThatLooksLikeAList) {
  EXPECT_EQ(read({"plan", "--dim", "w=[{}, {mp}]", "[a]"}).dims, (std::vector<std::string>{"w=[{}, {mp}]"}));
  EXPECT_EQ(read({"plan", "--dim", "[{x}, {y}]", "[a]"}).dims, (std::vector<std::string>{"[{x}, {y}]"}));
  EXPECT_EQ(read({"plan", "--dim", "-1,0", "a"}).dims, (std::vector<std::string>{"-1,0"}));
}

struct FaultCase {
  std::vector<std::string> arguments;
  const char* faults;
};
const FaultCase kFaults[] = {
    {{"plan"}, "prog plan: MODEL is missing: a model file"},
    {{"plna"}, "prog: there is no command 'plna'; did you mean 'plan'?"},
    {{"a.yaml"}, "prog: there is no command 'a.yaml'; did you mean 'prog plan a.yaml'?"},
    {{"--json"}, "prog: there is no option '--json' before the command"},
    {{"help", "plam"}, "prog: there is no command 'plam'; did you mean 'plan'?"},
    {{"plan", "a", "b"}, "prog plan: unexpected argument 'b'"},
    {{"plan", "a", "--levl=2"}, "prog plan: there is no option '--levl'; did you mean '--level'?"},
    {{"plan", "a", "--level"}, "prog plan: --level needs a value"},
    {{"plan", "a", "--level", "3"}, "prog plan: --level 3: expected a whole number from 0 to 2"},
    {{"plan", "a", "--level", "1.5"}, "prog plan: --level 1.5: expected a whole number from 0 to 2"},
    {{"plan", "a", "--level", "9999999999999"},
     "prog plan: --level 9999999999999: expected a whole number from 0 to 2"},
    {{"plan", "a", "--level", "1", "--level", "2"}, "prog plan: --level is given 2 times; it may be given once"},
    {{"plan", "a", "--share", "nan"}, "prog plan: --share nan: expected a number from 0 to 1"},
    {{"plan", "a", "--seconds", "0"}, "prog plan: --seconds 0: expected a number above 0"},
    {{"plan", "a", "--seconds", "inf"}, "prog plan: --seconds inf: expected a number above 0"},
    {{"plan", "a", "--seed", "-1"}, "prog plan: --seed -1: expected a whole number of at least 0"},
    {{"plan", "a", "--mode", "bounden"},
     "prog plan: --mode bounden: did you mean 'bounded'? expected bounded or unbounded"},
    {{"plan", "a", "--json={"}, "prog plan: --json takes no value, found '{'"},
    {{"plan", "a", "--json=false"}, "prog plan: --json takes no value, found 'false'"},
    {{"plan", "a", "--seed", "x", "--mode", ""},
     "prog plan: --seed x: expected a whole number of at least 0\nprog plan: --mode needs a value"},
    {{"plan", "", "--dim", ""}, "prog plan: MODEL needs a value\nprog plan: --dim needs a value"},
    {{"plan", "a", "--seed", "99999999999999999999"},
     "prog plan: --seed 99999999999999999999: expected a whole number of at least 0 and at most "
     "18446744073709551615"},
    {{"plan", "a", "--seconds", "1e400"},
     "prog plan: --seconds 1e400: expected a number above 0 and at most 1.7976931348623157e+308"},
};

TEST(CommandLineTest, NamesEveryFault) {
  for (const FaultCase& c : kFaults) EXPECT_EQ(faults_of(c.arguments), c.faults);
}

TEST(CommandLineTest, SaysHowToGoOn) {
  Values values;
  try {
    read_command_line(program_of(values), {"plan"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "prog plan: MODEL is missing: a model file\nusage: prog plan MODEL [options]\n"
                 "for example: prog plan a.yaml\nall options: prog plan --help");
  }
}

TEST(HelpTest, ShowsGroupsDefaultsAndExamples) {
  const std::string page = R"(Plan a model

usage: prog plan MODEL [options]

  MODEL              a model file

How:
  --level LEVEL      the objective
  --share SHARE      a share (default: 0.5)
  --seconds SECONDS  a limit
  --seed N           a seed (default: 0)
  --mode MODE        a mode: bounded, unbounded (default: bounded)
  --dim NAME=SIZE    a size; may be repeated
  --json             as JSON

Examples:
  prog plan a.yaml  one model
)";
  Values values;
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"plan", "--help"},
                                             {"plan", "-h"},
                                             {"help", "plan"},
                                             {"--help", "plan"},
                                             {"plan", "--level", "7", "--help"}}) {
    EXPECT_EQ(read_command_line(program_of(values), call).page, page);
  }
}

TEST(HelpTest, ListsCommandsByTopic) {
  Values values;
  EXPECT_EQ(read_command_line(program_of(values), {"--help"}).page, R"(What it is for.

usage: prog COMMAND [arguments]       details: prog COMMAND --help

Plan:
  plan  Plan a model

Exit codes:
  0     done
)");
  EXPECT_EQ(read_command_line(program_of(values), {"--version"}).page, "prog 1.2\n");
}

}  // namespace
}  // namespace shardplan
