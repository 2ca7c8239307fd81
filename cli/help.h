#pragma once

#include <string>

#include "cli/command_table.h"

namespace shardplan {

/// "shardplan plan MODEL [options]"
std::string usage_line(const Program& program, const Command& command);

/// The commands with their summaries, by topic.
std::string command_list(const Program& program);

/// What `shardplan --help` prints: what the program is for, its commands, examples, exit codes.
std::string overview_page(const Program& program);

/// What `shardplan COMMAND --help` prints: usage, arguments, options by group, examples.
std::string help_page(const Program& program, const Command& command);

/// What help says of an option behind its name: its phrase, the words it takes, its default.
std::string option_help(const Option& option);

}  // namespace shardplan
