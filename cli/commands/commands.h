#pragma once

#include "cli/command_table.h"

namespace shardplan {

// One file per command: cli/commands/<name>_command.cc declares its options and calls the library that does the work.
Command calibrate_command();
Command checkpoint_command();
Command cluster_command();
Command compare_command();
Command completion_command();
Command diff_command();
Command explain_command();
Command export_command();
Command layout_command();
Command operators_command();
Command plan_command();
Command redistribute_command();
Command schema_command();
Command scheduler_command();
Command simulate_command();
Command solve_command();
Command validate_command();
Command worker_command();

/// All commands in the order of the overview, and the other texts of `shardplan --help`.
Program shardplan_program();

}  // namespace shardplan
