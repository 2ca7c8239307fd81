#pragma once

#include <string>

#include "tests/support/files.h"

namespace shardplan {

/// The results of a run of the program.
struct ProgramRun {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Runs the shardplan that was built with the tests, in `folder`, with arguments as a shell would split them. If
/// `interrupt_after` is above 0, sends SIGINT after that many seconds.
ProgramRun run_program(const std::string& arguments, const std::string& folder = ".", int interrupt_after = 0);

/// A temporary folder with links to the project's `configs` and `tests`.
class ProjectFolder : public TemporaryFolder {
 public:
  ProjectFolder();
};

}  // namespace shardplan
