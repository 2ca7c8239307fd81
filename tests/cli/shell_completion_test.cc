#include "cli/shell_completion.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "base/write_files.h"
#include "cli/commands/commands.h"
#include "tests/cli/run_program.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

/// The completions that bash offers at the end of a line, on one line; `words` are the line's words, quoted for a
/// shell.
std::string offered(const ProjectFolder& folder, const std::string& words) {
  write_file(folder.path() + "/shardplan.bash", completion_script(shardplan_program(), "bash"));
  write_file(folder.path() + "/ask.bash", fmt::format("source shardplan.bash\nCOMP_WORDS=({})\n"
                                                      "COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n_shardplan\n"
                                                      "echo \"${{COMPREPLY[*]}}\" >offered\n",
                                                      words));
  EXPECT_EQ(std::system(("cd " + folder.path() + " && bash -u ask.bash").c_str()), 0) << words;
  std::ifstream file(folder.path() + "/offered");
  std::string line;
  std::getline(file, line);
  return line;
}

TEST(ShellCompletionTest, BashOffersWhatMayStandThere) {
  const ProjectFolder folder;
  write_file(folder.path() + "/my model.yaml", "");
  EXPECT_EQ(offered(folder, "shardplan co"), "compare completion");
  EXPECT_EQ(offered(folder, "shardplan plan --le"), "--level");
  EXPECT_EQ(offered(folder, "shardplan plan x.yaml --level ''"), "0 1 2");
  EXPECT_EQ(offered(folder, "shardplan plan --cluster dgx-a"), "dgx-a100");
  EXPECT_EQ(offered(folder, "shardplan plan my"), "my model.yaml");
  EXPECT_EQ(offered(folder, "shardplan export --to meg"), "megatron");
  EXPECT_EQ(offered(folder, "shardplan operators FlashA"), "FlashAttention FlashAttentionGrad");
  EXPECT_EQ(offered(folder, "shardplan plan --out te"), "tests");
  EXPECT_EQ(offered(folder, "shardplan nonsense x"), "");
}

/// Scripts are parsed by their shells, the manual page by groff; the test prints which of these are not installed.
TEST(ShellCompletionTest, ScriptsAndManualPageAreReadWithoutComplaint) {
  const Program program = shardplan_program();
  const ProjectFolder folder;
  struct ShellReader {
    const char* program;
    std::string text;
    const char* command;
  };
  const ShellReader readers[] = {{"bash", completion_script(program, "bash"), "bash -n text"},
                                 {"zsh", completion_script(program, "zsh"), "zsh -n text"},
                                 {"fish", completion_script(program, "fish"), "fish --no-execute text"},
                                 {"groff", manual_page(program), "test -z \"$(groff -man -ww -z text 2>&1)\""}};
  for (const ShellReader& reader : readers) {
    for (const Command& command : program.commands) expect_has(reader.text, command.name);
    if (std::system(fmt::format("command -v {} >/dev/null", reader.program).c_str()) != 0) {
      std::cout << "there is no " << reader.program << ": what is written for it is not read\n";
      continue;
    }
    write_file(folder.path() + "/text", reader.text);
    EXPECT_EQ(std::system(fmt::format("cd {} && {}", folder.path(), reader.command).c_str()), 0) << reader.program;
  }
}

}  // namespace
}  // namespace shardplan
