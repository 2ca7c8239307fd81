#include "tests/cli/run_program.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

namespace shardplan {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TemporaryFolder::TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "shardplan.XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) throw std::filesystem::filesystem_error("mkdtemp", path_, std::error_code());
  for (const char* folder : {"configs", "tests"}) {
    std::filesystem::create_directory_symlink(std::filesystem::absolute(folder), path_ + "/" + folder);
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
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
  run.out = text_of(streams.path() + "/out");
  run.err = text_of(streams.path() + "/err");
  return run;
}

}  // namespace shardplan
