#pragma once

#include <optional>
#include <string>

#include "cli/command_table.h"
#include "simulator/workers/job.h"

namespace shardplan {

/// The options of `worker` and `scheduler`: who takes part in a job of processes.
struct JobArguments {
  std::optional<std::string> host;
  std::optional<int> port;
  std::optional<int> workers;
  double timeout = 60;
};

inline constexpr int kMostWorkers = 4096;

OptionGroup job_options(JobArguments& arguments);

/// What the options say, else MindSpore's variables MS_SCHED_HOST, MS_SCHED_PORT and MS_WORKER_NUM. Throws InputError:
/// neither says it, a variable holds no such number, or MS_ROLE is another than `role`. The scheduler alone may take
/// port 0.
JobOptions job_of(const JobArguments& arguments, const std::string& role);

/// MS_NODE_ID. Throws InputError: it is no rank.
std::optional<int> rank_of_environment();

}  // namespace shardplan
