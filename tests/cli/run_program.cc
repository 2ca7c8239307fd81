#include "tests/cli/run_program.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>

namespace shardplan {

ProjectFolder::ProjectFolder() {
  for (const char* folder : {"configs", "tests"}) {
    std::filesystem::create_directory_symlink(std::filesystem::absolute(folder), at(folder));
  }
}

ProgramRun run_program(const std::string& arguments, const std::string& folder, int interrupt_after) {
  const TemporaryFolder streams;
  const std::string interrupt =
      interrupt_after > 0 ? fmt::format("timeout --preserve-status -s INT {} ", interrupt_after) : "";
  const std::string command = fmt::format("cd '{}' && {}'{}' {} >{}/out 2>{}/err </dev/null", folder, interrupt,
                                          SHARDPLAN_BINARY, arguments, streams.path(), streams.path());
  const int status = std::system(command.c_str());
  ProgramRun run;
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.out = content_of(streams.path() + "/out");
  run.err = content_of(streams.path() + "/err");
  return run;
}

}  // namespace shardplan
