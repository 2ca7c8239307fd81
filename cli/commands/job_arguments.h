#pragma once

#include <optional>
#include <string>

#include "cli/command_table.h"
#include "simulator/workers/job.h"

namespace shardplan {

/// The options of `worker` and `scheduler`: the members of a job of processes.
struct JobArguments {
  std::optional<std::string> host;
  std::optional<int> port;
  std::optional<int> workers;
  double timeout = 60;
};

inline constexpr int kMostWorkers = 4096;

OptionGroup job_options(JobArguments& arguments);

/// The job from the options, else from MindSpore's variables MS_SCHED_HOST, MS_SCHED_PORT and MS_WORKER_NUM. Throws
/// InputError if a value is set by neither, a variable is not a valid number, or MS_ROLE differs from `role`. Only the
/// scheduler may take port 0.
JobOptions job_of(const JobArguments& arguments, const std::string& role);

/// MS_NODE_ID. Throws InputError if it is not a rank.
std::optional<int> rank_of_environment();

}  // namespace shardplan
