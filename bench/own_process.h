#pragma once

#include <functional>

namespace shardplan {

/// The resources used by a process that ran one task.
struct Process {
  bool is_finished = false;
  int exit_code = 0;
  double seconds = 0;    // processor time of all threads together, which other load on the machine hardly changes
  double mebibytes = 0;  // peak memory
};

/// Runs `task` in a forked process, whose changes of memory are not shared. Its exceptions are printed; InputError is
/// not a failure.
Process in_own_process(const std::function<int()>& task);

}  // namespace shardplan
