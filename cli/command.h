#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stop_token>
#include <string>

namespace shardplan {

/// Exit codes, the same for every command.
enum ExitCode {
  kDone = 0,
  kOurFault = 1,
  kUsage = 2,
  kBadInput = 3,
  kNoFeasiblePlan = 4,
  kDifferenceFound = 5,
  kInterrupted = 130,
};

/// What a command does once its arguments are read; gives the exit code. Throws InputError.
using CommandAction = std::function<int()>;

// Each adds its subcommand to `app`; parsing sets `action`. One file a command: cli/<name>_command.cc.
void add_cluster_command(CLI::App& app, CommandAction& action);
void add_compare_command(CLI::App& app, CommandAction& action);
void add_explain_command(CLI::App& app, CommandAction& action);
void add_export_command(CLI::App& app, CommandAction& action);
void add_layout_command(CLI::App& app, CommandAction& action);
void add_operators_command(CLI::App& app, CommandAction& action);
void add_plan_command(CLI::App& app, CommandAction& action);
void add_redistribute_command(CLI::App& app, CommandAction& action);
void add_schema_command(CLI::App& app, CommandAction& action);
void add_simulate_command(CLI::App& app, CommandAction& action);
void add_solve_command(CLI::App& app, CommandAction& action);
void add_validate_command(CLI::App& app, CommandAction& action);

/// Writes to standard output, once, whole.
void print(const std::string& text);
/// A line on standard error.
void notice(const std::string& text);
/// True if standard output is a terminal and NO_COLOR is unset or empty.
bool wants_colour();
/// True if standard error is a terminal: progress may be shown.
bool shows_progress();

/// Asked to stop by the first Ctrl-C (the second ends the process at once).
std::stop_token interrupt_token();
/// kInterrupted if Ctrl-C was pressed, else `code`.
int exit_code(int code);

}  // namespace shardplan
