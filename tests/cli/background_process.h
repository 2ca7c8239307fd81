#pragma once

#include <sys/types.h>

#include <string>

#include "tests/cli/run_program.h"

namespace shardplan {

/// A run of shardplan, or of a shell command, that continues beside the test and never outlives it.
class BackgroundProcess {
 public:
  /// Arguments as a shell would split them, with environment variables: "MS_ROLE=MS_WORKER MS_WORKER_NUM=2".
  explicit BackgroundProcess(const std::string& arguments, const std::string& variables = "");
  ~BackgroundProcess();
  BackgroundProcess(const BackgroundProcess&) = delete;
  BackgroundProcess& operator=(const BackgroundProcess&) = delete;

  pid_t id() const { return id_; }
  void send_signal(int signal) const;
  /// Everything written to standard error so far.
  std::string err() const;
  /// Waits until that contains `text`; false if the process ends without it.
  bool waits_for(const std::string& text);
  /// Waits for its end. After three minutes it is killed: exit code 137.
  ProgramRun wait();

 private:
  bool has_ended();

  TemporaryFolder streams_;
  pid_t id_ = 0;
  int status_ = 0;
  bool has_ended_ = false;
};

}  // namespace shardplan
