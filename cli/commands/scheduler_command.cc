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
  command.summary = "Bring the processes of 'shardplan worker' together";
  command.description =
      "It waits until all workers are there, tells them each other's addresses, and ends with them. If one does not "
      "come, fails, or its connection is lost, all end with an error that says which. It reads no model.";
  command.examples = {
      {"--port 0 --workers 5 --timeout 0.1", "for five workers on this machine, of which none comes", kBadInput}};
  command.options.push_back(job_options(*arguments));
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
