#include "tests/cli/background_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace shardplan {
namespace {

constexpr std::chrono::seconds kLongestRun{180};

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

}  // namespace

BackgroundProcess::BackgroundProcess(const std::string& arguments, const std::string& variables) {
  const std::string command = fmt::format("exec env {} '{}' {} >{}/out 2>{}/err </dev/null", variables,
                                          SHARDPLAN_BINARY, arguments, streams_.path(), streams_.path());
  id_ = fork();
  if (id_ == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
}

BackgroundProcess::~BackgroundProcess() {
  if (has_ended()) return;
  send_signal(SIGKILL);
  waitpid(id_, &status_, 0);
}

void BackgroundProcess::send_signal(int signal) const { kill(id_, signal); }

bool BackgroundProcess::has_ended() {
  if (!has_ended_) has_ended_ = waitpid(id_, &status_, WNOHANG) != 0;
  return has_ended_;
}

std::string BackgroundProcess::err() const { return content_of(streams_.path() + "/err"); }

bool BackgroundProcess::waits_for(const std::string& text) {
  for (;;) {
    const bool ends = has_ended();
    if (err().find(text) != std::string::npos) return true;
    if (ends) return false;
    pause();
  }
}

ProgramRun BackgroundProcess::wait() {
  const auto begin = std::chrono::steady_clock::now();
  while (!has_ended()) {
    if (std::chrono::steady_clock::now() - begin > kLongestRun) send_signal(SIGKILL);
    pause();
  }
  ProgramRun run;
  run.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  run.out = content_of(streams_.path() + "/out");
  run.err = err();
  return run;
}

}  // namespace shardplan
