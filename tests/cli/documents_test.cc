// Runs every command that the documents and the help pages show, so that none of them promises what no longer works. In
// a document a command is a line of a block that begins with ./run, shardplan or a prompt before either, or a word in
// backquotes in a table; "# exit code 4" after it gives its exit code. The lines of a block below a command with a
// prompt are its complete output. A block or table after a comment
//
//   <!-- not run by the tests: REASON -->
//
// is left out.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "base/write_files.h"
#include "cli/commands/commands.h"
#include "tests/cli/run_program.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

struct ShownCommand {
  std::string arguments;
  int exit_code = 0;
  int line = 0;
  std::string output;  // empty: not shown
};

/// The arguments if the text calls the program; `./run test` and `./run bench` call the build.
std::optional<std::string> arguments_of(std::string text) {
  if (text.starts_with("$ ")) text.erase(0, 2);
  for (const std::string prefix : {"./run ", "shardplan "}) {
    if (!text.starts_with(prefix)) continue;
    text.erase(0, prefix.size());
    if (text.starts_with("test") || text.starts_with("bench")) return std::nullopt;
    return text;
  }
  return std::nullopt;
}

/// The text in backquotes at the beginning of a table row: "| `./run plan X` | ...".
std::string first_cell(const std::string& line) {
  if (!line.starts_with("| `")) return "";
  return line.substr(3, line.find('`', 3) - 3);
}

std::vector<ShownCommand> commands_in(const std::string& text) {
  std::vector<ShownCommand> commands;
  std::istringstream lines(text);
  bool is_fenced = false;
  bool is_left_out = false;
  bool is_output = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("<!-- not run by the tests:")) is_left_out = true;
    if (line.starts_with("```")) {
      is_fenced = !is_fenced;
      is_output = false;
      if (!is_fenced) is_left_out = false;
      continue;
    }
    if (line.empty() && !is_fenced) is_left_out = false;
    const bool is_indented = line.starts_with("    ");
    std::string shown = is_fenced ? line : is_indented ? line.substr(4) : first_cell(line);
    const std::optional<std::string> arguments = arguments_of(shown);
    if (is_fenced && !arguments && is_output) commands.back().output += line + "\n";
    if (!arguments || is_left_out) continue;
    is_output = is_fenced && shown.starts_with("$ ");
    ShownCommand command{*arguments, 0, number, ""};
    if (const std::size_t comment = command.arguments.find("  # "); comment != std::string::npos) {
      const std::string remark = command.arguments.substr(comment);
      if (const std::size_t at = remark.find("exit code "); at != std::string::npos) {
        command.exit_code = std::stoi(remark.substr(at + 10));
      }
      command.arguments.resize(comment);
    }
    commands.push_back(command);
  }
  return commands;
}

/// Files that a document asks to be written, by name: a fenced block after a line that ends in "Write this to `NAME`:".
std::vector<std::pair<std::string, std::string>> files_in(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> files;
  const std::string ask = "Write this to `";
  for (std::size_t at = text.find(ask); at != std::string::npos; at = text.find(ask, at + 1)) {
    const std::size_t name = at + ask.size(), end = text.find('`', name);
    const std::size_t begin = text.find('\n', text.find("```", end)) + 1;
    files.emplace_back(text.substr(name, end - name), text.substr(begin, text.find("```", begin) - begin));
  }
  return files;
}

/// The files in configs/documents are meant to be shown.
TEST(DocumentsTest, ShowEveryConfigurationMadeForThem) {
  const std::string text = content_of("docs/mindspore.md");
  for (const auto& entry : std::filesystem::directory_iterator("configs/documents")) {
    EXPECT_NE(text.find(entry.path().string()), std::string::npos) << entry.path();
  }
}

TEST(DocumentsTest, FindsTheCommandsOfADocument) {
  const std::vector<ShownCommand> commands = commands_in(
      "# Title\n\n    ./run plan a.yaml   # some remark\n    ./run test\n\n```\n$ ./run plan b.yaml  # exit code 4\n"
      "fits\n```\n\n<!-- not run by the tests: slow -->\n```\n./run plan c.yaml\n```\n| `./run layout` | what |\n");
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_EQ(commands[0].arguments, "plan a.yaml ");
  EXPECT_EQ(commands[1].arguments, "plan b.yaml");
  EXPECT_EQ(commands[1].exit_code, 4);
  EXPECT_EQ(commands[1].line, 7);
  EXPECT_EQ(commands[1].output, "fits\n");
  EXPECT_EQ(commands[0].output, "");
  EXPECT_EQ(commands[2].arguments, "layout");
}

/// Checks the report for people that a command printed.
void expect_readable(const std::string& arguments, const std::string& out) {
  if (!arguments.starts_with("plan ") && !arguments.starts_with("diff ")) return;
  const testing::ScopedTrace shown(__FILE__, __LINE__, "shardplan " + arguments);
  expect_fits_terminal(out);
}

class DocumentTest : public testing::TestWithParam<std::string> {};

TEST_P(DocumentTest, CommandsEndAsShown) {
  const std::string text = content_of(GetParam());
  ASSERT_FALSE(text.empty());
  const ProjectFolder folder;
  std::filesystem::copy_file("tests/data/contest_problem.json", folder.path() + "/problem.json");
  for (const auto& [name, content] : files_in(text)) write_file(folder.path() + "/" + name, content);
  for (const ShownCommand& command : commands_in(text)) {
    const ProgramRun run = run_program(command.arguments, folder.path());
    EXPECT_EQ(run.exit_code, command.exit_code)
        << GetParam() << ":" << command.line << ": shardplan " << command.arguments << "\n"
        << run.err;
    expect_readable(command.arguments, run.out);
    if (!command.output.empty()) {
      EXPECT_EQ(run.out, command.output) << GetParam() << ":" << command.line << " shows another output";
    }
  }
}

std::vector<std::string> documents() {
  std::vector<std::string> paths{"README.md"};
  std::error_code ignored;  // run from elsewhere, README.md is reported as missing
  for (const auto& entry : std::filesystem::directory_iterator("docs", ignored)) {
    if (entry.path().extension() == ".md") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(All, DocumentTest, testing::ValuesIn(documents()), [](const auto& param) {
  std::string name = std::filesystem::path(param.param).stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

/// The examples of one command's help page, in order.
class HelpExamplesTest : public testing::TestWithParam<std::string> {};

TEST_P(HelpExamplesTest, EndAsShown) {
  const Program program = shardplan_program();
  const ProjectFolder folder;
  std::filesystem::copy_file("tests/data/contest_problem.json", folder.path() + "/problem.json");
  ASSERT_EQ(run_program("plan configs/mlp.yaml --out out", folder.path()).exit_code, 0);
  ASSERT_EQ(run_program("plan configs/mlp.yaml --level 1 --out memory", folder.path()).exit_code, 0);
  ASSERT_EQ(run_program("simulate configs/mnist-train.yaml --steps 1 --save saved", folder.path()).exit_code, 0);
  for (const Example& example : program.find(GetParam())->examples) {
    const ProgramRun run = run_program(GetParam() + " " + example.arguments, folder.path());
    EXPECT_EQ(run.exit_code, example.exit_code) << GetParam() << " " << example.arguments << "\n" << run.err;
    expect_readable(GetParam() + " " + example.arguments, run.out);
  }
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : shardplan_program().commands) names.push_back(command.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, HelpExamplesTest, testing::ValuesIn(command_names()),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace shardplan
