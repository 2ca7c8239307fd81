#include <memory>

#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/shell_completion.h"
#include "cli/terminal.h"

namespace shardplan {

Command completion_command() {
  const auto shell = std::make_shared<std::string>();
  Command command;
  command.name = "completion";
  command.topic = "Look up";
  command.summary = "Print a shell's completion script, or the manual page";
  command.description =
      "cmake --install puts all of them where shells and man look for them. The scripts are static: they are generated "
      "from the same table as the help pages.";
  command.examples = {
      {"bash > shardplan.bash", "then: source shardplan.bash"},
      {"zsh > _shardplan", "save it in a folder of $fpath"},
      {"fish > shardplan.fish", "save it in ~/.config/fish/completions"},
      {"man > shardplan.1", "then: man ./shardplan.1"},
  };
  std::vector<std::string> words = completion_shells();
  words.emplace_back("man");
  command.options = {{"", {argument("WHAT", shell.get(), "the shell, or man", one_of(words))}}};
  command.action = [shell] {
    const Program program = shardplan_program();
    print(*shell == "man" ? manual_page(program) : completion_script(program, *shell));
    return static_cast<int>(kDone);
  };
  return command;
}

}  // namespace shardplan
