#pragma once

#include <functional>

namespace shardplan {

/// What a process took that ran a task of its own.
struct Process {
  bool is_finished = false;
  int exit_code = 0;
  double seconds = 0;    // of processor time, of all threads together, which other work on the machine hardly changes
  double mebibytes = 0;  // the most it held
};

/// Runs `task` in a process that begins with this one's memory and shares nothing that it changes. What it throws is
/// printed; wrong input is no failure.
Process in_own_process(const std::function<int()>& task);

}  // namespace shardplan
