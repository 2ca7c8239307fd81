#pragma once

#include <string>

#include "cli/command_table.h"

namespace shardplan {

/// "shardplan plan MODEL [options]"
std::string usage_line(const Program& program, const Command& command);

/// The commands with their summaries, by topic.
std::string command_list(const Program& program);

/// The output of `shardplan --help`: the program's purpose, its commands, examples, exit codes.
std::string overview_page(const Program& program);

/// The output of `shardplan COMMAND --help`: usage, arguments, options by group, examples.
std::string help_page(const Program& program, const Command& command);

/// The help text after an option's name: its phrase, the allowed words, its default.
std::string option_help(const Option& option);

}  // namespace shardplan
