#pragma once

#include <string>

#include "tests/support/files.h"

namespace shardplan {

/// What a run of the program left.
struct ProgramRun {
  int exit_code = 0;
  std::string out;
  std::string err;
};

/// Runs the shardplan that was built with the tests, in `folder`, with arguments as a shell would split them.
/// `interrupt_after`, if above 0, sends it SIGINT after that many seconds.
ProgramRun run_program(const std::string& arguments, const std::string& folder = ".", int interrupt_after = 0);

/// A temporary folder in which `configs` and `tests` lead to the project's.
class ProjectFolder : public TemporaryFolder {
 public:
  ProjectFolder();
};

}  // namespace shardplan
