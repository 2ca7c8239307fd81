#include <memory>

#include "cli/commands/commands.h"
#include "cli/commands/job_arguments.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "simulator/workers/scheduler.h"

namespace shardplan {
namespace {

int run(const JobArguments& arguments) {
  const JobOptions options = job_of(arguments, "MS_SCHED");
  begin_phase("waiting for workers", PhaseEnd::kBySelf);
  run_scheduler(options, notice);
  return kDone;
}

}  // namespace

Command scheduler_command() {
  const auto arguments = std::make_shared<JobArguments>();
  Command command;
  command.name = "scheduler";
  command.topic = "Prove a plan";
  command.summary = "Connect the processes of 'shardplan worker'";
  command.description =
      "It waits until all workers have connected, exchanges their addresses, and ends with them. If a worker is "
      "missing, "
      "fails, or loses its connection, all end with an error that names it. The scheduler reads no model.";
  command.examples = {
      {"--port 0 --workers 5 --timeout 0.1", "for five workers on this machine, none of which is started", kBadInput}};
  command.options.push_back(job_options(*arguments));
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
