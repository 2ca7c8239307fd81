#include "bench/own_process.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/error.h"

namespace shardplan {

Process in_own_process(const std::function<int()>& task) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      code = task();
    } catch (const InputError& error) {
      std::string why = error.what();
      if (const std::size_t end = why.find('\n'); end != std::string::npos) why.resize(end);
      fmt::print("{}\n", why);
      code = 0;
    } catch (const std::exception& error) {
      fmt::print("{}\n", error.what());
    }
    std::fflush(stdout);
    _exit(code);
  }
  Process process;
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child) return process;
  process.is_finished = WIFEXITED(status);
  process.exit_code = process.is_finished ? WEXITSTATUS(status) : 0;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  process.seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  process.mebibytes = static_cast<double>(used.ru_maxrss) / 1024;
  return process;
}

}  // namespace shardplan
