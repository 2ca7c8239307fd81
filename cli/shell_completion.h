#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command_table.h"

namespace shardplan {

/// The shells for which a script can be written: "bash", "zsh", "fish".
std::vector<std::string> completion_shells();
/// The script that completes the program's commands, options and their values in one of these shells. It is generated
/// from the command table and calls nothing.
std::string completion_script(const Program& program, std::string_view shell);

/// The manual page in the language of man(7): every command with its options and examples.
std::string manual_page(const Program& program);

}  // namespace shardplan
