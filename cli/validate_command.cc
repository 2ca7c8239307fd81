#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "cli/planning_options.h"
#include "report/proof_report.h"

namespace shardplan {
namespace {

struct ValidateArguments {
  PlanningArguments planning;
  int steps = 3;
  bool full_size = false;
  bool faults = false;
  bool json = false;
  std::string until;
};

ValidationSubject subject_of(const Plan& plan, const PlanningArguments& arguments) {
  return {plan.model->name, plan.graph->is_training(), plan.options.level, plan.mesh, arguments.model, arguments.seed};
}

int threads_of(const PlanningArguments& arguments) {
  return arguments.threads > 1 ? arguments.threads
                               : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

int run_validate(const ValidateArguments& arguments) {
  const PlannedModel planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits");
    return kNoFeasiblePlan;
  }
  const Plan& plan = planned.plan;
  ProofOptions options;
  options.validation.seed = arguments.planning.seed;
  options.validation.steps = arguments.steps;
  options.validation.threads = threads_of(arguments.planning);
  options.validation.until = arguments.until;
  options.shrink = !arguments.full_size;
  options.mutations = arguments.faults;
  options.validation.stop = interrupt_token();
  if (shows_progress()) options.validation.progress = notice;
  const Proof proof = prove(plan, options);
  const ValidationSubject subject = subject_of(plan, arguments.planning);
  print(arguments.json ? validation_json(subject, proof) : validation_text(subject, proof));
  return validation_exit_code(proof);
}

int run_simulate(const ValidateArguments& arguments) {
  const PlannedModel planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits");
    return kNoFeasiblePlan;
  }
  const Plan& plan = planned.plan;
  if (!plan.graph->loss()) {
    throw InputError({arguments.planning.model, 0, 0}, "nothing to simulate: the model has no 'loss'");
  }
  const std::vector<std::string> missing = operators_without_kernel(*plan.graph);
  if (!missing.empty()) {
    throw InputError({arguments.planning.model, 0, 0}, "no local computation is known for {}", missing.front());
  }
  const Executable executable = make_executable(plan, !arguments.full_size, ProofOptions().most_devices);
  std::vector<SimulatedStep> steps;
  if (executable.shrinking.refusal.empty()) {
    steps = simulate(executable.program, *executable.graph,
                     {.seed = arguments.planning.seed,
                      .steps = arguments.steps,
                      .threads = threads_of(arguments.planning),
                      .stop = interrupt_token()});
  }
  const ValidationSubject subject = subject_of(plan, arguments.planning);
  print(arguments.json ? simulation_json(subject, executable.shrinking, steps)
                       : simulation_text(subject, executable.shrinking, steps));
  return executable.shrinking.refusal.empty() ? kDone : kBadInput;
}

}  // namespace

void add_validate_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("validate", "Run the plan on simulated devices and compare it with one device");
  const auto arguments = std::make_shared<ValidateArguments>();
  add_planning_options(*command, arguments->planning);
  command->add_option("--steps", arguments->steps, "training steps in each precision (3)")->check(CLI::Range(1, 1000));
  command->add_flag("--full-size", arguments->full_size, "at the model's own sizes: as slow as the model is large");
  command->add_flag("--faults", arguments->faults,
                    "then make every collective wrong in turn and show that it is noticed");
  command->add_option("--until", arguments->until, "compare this tensor instead of the outputs");
  command->add_flag("--json", arguments->json, "one JSON document");
  command->callback([arguments, &action] { action = [arguments] { return run_validate(*arguments); }; });
}

void add_simulate_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("simulate", "Train on simulated devices and on one, side by side");
  const auto arguments = std::make_shared<ValidateArguments>();
  arguments->steps = 20;
  add_planning_options(*command, arguments->planning);
  command->add_option("--steps", arguments->steps, "training steps (20)")->check(CLI::Range(1, 100000));
  command->add_flag("--full-size", arguments->full_size, "at the model's own sizes: as slow as the model is large");
  command->add_flag("--json", arguments->json, "one JSON document");
  command->callback([arguments, &action] { action = [arguments] { return run_simulate(*arguments); }; });
}

}  // namespace shardplan
