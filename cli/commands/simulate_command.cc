#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/local_model_command.h"
#include "cli/commands/proof_subject.h"
#include "cli/commands/simulate_arguments.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "report/proof_report.h"
#include "simulator/checkpoint/training_checkpoint.h"

namespace shardplan {
namespace {

void check(const SimulateArguments& arguments, const Plan& plan) {
  const SourcePlace model{arguments.planning.model, 0, 0};
  if (scalar_outputs(*plan.graph).empty()) {
    throw InputError(model, "nothing to simulate: the model has no 'loss' and no scalar output");
  }
  const std::vector<std::string> missing = operators_without_kernel(*plan.graph);
  if (!missing.empty()) throw InputError(model, "no local computation is known for {}", missing.front());
  check_saving(arguments, plan.graph->is_training());
}

int simulate_plan(const SimulateArguments& arguments) {
  const PreparedPlan planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits");
    return kNoFeasiblePlan;
  }
  const Plan& plan = planned.plan;
  check(arguments, plan);
  // A checkpoint has the model's full sizes.
  const bool full_size = arguments.full_size || !arguments.save.empty() || !arguments.load.empty();
  const Executable executable = make_executable(plan, !full_size, ProofOptions().most_devices);
  SimulationOptions options;
  options.seed = arguments.planning.seed.value_or(0);
  options.steps = arguments.steps;
  options.threads = threads_of(arguments.planning);
  options.stop = interrupt_token();
  std::vector<SimulatedScalar> scalars;
  if (executable.shrinking.refusal.empty()) {
    const ParallelProgram& program = executable.program;
    begin_with_checkpoint(arguments, executable.graph->is_training(), options, [&](Checkpoint& checkpoint) {
      return load_checkpoint(checkpoint, program, *executable.graph);
    });
    const std::int64_t last = options.first_step + options.steps;
    check_folders(arguments, options.first_step, last);
    options.after_step = [&](std::int64_t steps, const Executor& executor) {
      save_if_due(arguments, steps, last, [&](const std::string& folder) {
        const CheckpointForm form = stored_form(program, *executable.graph, steps, options.seed);
        save_checkpoint(folder, arguments.integrated ? integrated(form) : form, program, *executable.graph, executor);
      });
    };
    begin_phase("simulating", PhaseEnd::kBySelf);
    scalars = simulate(program, *executable.graph, options);
  }
  ValidationSubject subject = subject_of(plan, arguments.planning);
  subject.seed = options.seed;
  print(arguments.json ? simulation_json(subject, executable.shrinking, scalars, options.first_step)
                       : simulation_text(subject, executable.shrinking, scalars, options.first_step));
  return executable.shrinking.refusal.empty() ? kDone : kBadInput;
}

int run(const SimulateArguments& arguments) {
  try {
    return simulate_plan(arguments);
  } catch (const WrittenPerDevice& found) {
    return simulate_local_model(found, arguments);
  }
}

}  // namespace

Command simulate_command() {
  const auto arguments = std::make_shared<SimulateArguments>();
  Command command;
  command.name = "simulate";
  command.topic = "Prove a plan";
  command.summary = "Train on simulated devices and on one device, and print both losses side by side";
  command.description =
      "Scalar outputs are printed next to the loss. A model without 'training' is run on a new batch in each step, "
      "with --load using the trained weights. A model written per device is run on all its ranks, each from its own "
      "checkpoint file.";
  command.examples = {
      {"configs/mlp.yaml --steps 3", "three training steps"},
      {"configs/lenet.yaml --full-size", "at the model's own sizes"},
      {"configs/mnist-train.yaml --steps 4 --save saved", "also save what every rank holds"},
      {"configs/mnist-train.yaml --steps 2 --load saved --device-num 4", "continue from there, on other devices"},
      {"configs/manual-mlp-averaged.yaml --steps 3", "a model written per device: the loss of every rank"},
  };
  arguments->planning.proves = true;
  command.options = planning_options(arguments->planning);
  command.options.insert(command.options.begin(), {"", {model_argument(arguments->planning)}});
  command.options.push_back(
      {"The run",
       {option("--steps", "N", &arguments->steps, "training steps, or batches", from_to(1, 100000)),
        flag("--full-size", arguments->full_size, "use the model's own sizes; slow for large models")}});
  command.options.push_back(
      {"Checkpoints, at the model's own sizes",
       {option("--save", "FOLDER", &arguments->save, "write FOLDER/PREFIX-STEP: one safetensors file per rank")
            .completed_by(Completion::kFolder),
        option("--load", "FOLDER", &arguments->load,
               "start from this checkpoint, or from the last one in this folder; from any number of devices")
            .completed_by(Completion::kFolder),
        option("--prefix", "PREFIX", &arguments->prefix, "name prefix of the checkpoints"),
        flag("--integrated", arguments->integrated, "save complete tensors in one file instead"),
        option("--save-every", "N", &arguments->save_every, "save every N steps, not only at the end",
               from_to(0, 100000)),
        option("--keep-checkpoint-max", "N", &arguments->keep_most, "keep the N of PREFIX written last; 0: all",
               from_to(0, 100000))}});
  command.options.push_back({"Output", {flag("--json", arguments->json, "print one JSON document")}});
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
