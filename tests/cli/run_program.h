#pragma once

#include <string>

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

/// A folder of its own for one test, removed at its end, in which `configs` and `tests` lead to the project's.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace shardplan
