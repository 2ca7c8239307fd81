#include <memory>

#include "cli/commands/commands.h"
#include "cli/commands/local_model_command.h"
#include "cli/commands/planning_options.h"
#include "cli/commands/proof_subject.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
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
  std::string against;  // a file; empty: the model itself on one device
};

int prove_plan(const ValidateArguments& arguments) {
  const PreparedPlan planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits");
    return kNoFeasiblePlan;
  }
  if (!arguments.against.empty()) {
    throw InputError(SourcePlace{},
                     "--against {}: only for models written per device; a plan is compared with its own model",
                     arguments.against);
  }
  const Plan& plan = planned.plan;
  ProofOptions options;
  options.validation.seed = arguments.planning.seed.value_or(0);
  options.validation.steps = arguments.steps;
  options.validation.threads = threads_of(arguments.planning);
  options.validation.until = arguments.until;
  options.shrink = !arguments.full_size;
  options.mutations = arguments.faults;
  options.validation.stop = interrupt_token();
  if (shows_progress()) options.validation.progress = notice;
  begin_phase("proving the plan", PhaseEnd::kBySelf);
  const Proof proof = prove(plan, options);
  const ValidationSubject subject = subject_of(plan, arguments.planning);
  print(arguments.json ? validation_json(subject, proof) : validation_text(subject, proof));
  return validation_exit_code(proof);
}

int run_validate(const ValidateArguments& arguments) {
  try {
    return prove_plan(arguments);
  } catch (const WrittenPerDevice& found) {
    if (arguments.full_size || arguments.faults || !arguments.until.empty()) {
      throw InputError({arguments.planning.model, 0, 0},
                       "the model is written per device: it runs at its own sizes against its reference; --full-size, "
                       "--faults and --until are only for plans");
    }
    return validate_local_model(found, arguments.planning, arguments.against, arguments.steps, arguments.json);
  }
}

}  // namespace

Command validate_command() {
  const auto arguments = std::make_shared<ValidateArguments>();
  Command command;
  command.name = "validate";
  command.topic = "Prove a plan";
  command.summary = "Run a plan on simulated devices and compare every number with one device";
  command.description =
      "Sizes are reduced so that the proof takes seconds; every collective of the plan is executed between devices "
      "with "
      "separate memories. Exit code 5 if a difference is found.";
  command.examples = {
      {"configs/lenet.yaml", "plan the model, then prove the plan"},
      {"configs/mlp.yaml --faults", "also inject faults into every collective and show that they are detected"},
      {"out/plan.json --until layer1.matmul", "compare one tensor instead of the outputs"},
      {"configs/manual-mlp-averaged.yaml --against configs/manual-mlp-reference.yaml",
       "a model written per device against one in the view of all devices"},
  };
  arguments->planning.proves = true;
  command.options = planning_options(arguments->planning);
  command.options.insert(command.options.begin(), {"", {model_argument(arguments->planning)}});
  command.options.push_back(
      {"The proof",
       {option("--steps", "N", &arguments->steps, "training steps in each precision", from_to(1, 1000)),
        flag("--full-size", arguments->full_size, "use the model's own sizes; slow for large models"),
        flag("--faults", arguments->faults, "break every collective in turn and show that the fault is detected"),
        option("--until", "TENSOR", &arguments->until, "compare this tensor instead of the outputs"),
        option("--against", "FILE", &arguments->against,
               "of a model written per device: the model in the view of all devices that it is compared with, step by "
               "step")
            .completed_by(Completion::kFile)}});
  command.options.push_back({"Output", {flag("--json", arguments->json, "print one JSON document")}});
  command.action = [arguments] { return run_validate(*arguments); };
  return command;
}

}  // namespace shardplan
