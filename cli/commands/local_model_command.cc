#include "cli/commands/local_model_command.h"

#include <fmt/ranges.h>

#include "base/write_files.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "model/local_model.h"
#include "model/read_model.h"
#include "planner/local_plan.h"
#include "report/local_report.h"
#include "simulator/local/local_checkpoint.h"
#include "simulator/local/local_validation.h"

namespace shardplan {
namespace {

/// Refuses options of the search, which does not take place, and of the schedule, which the file determines.
void refuse_search(const PlanningArguments& arguments) {
  std::vector<GivenOption> refused;
  for (GivenOption& given : given_options(arguments)) {
    const bool is_of_search = given.role == PlanningRole::kSearch || given.role == PlanningRole::kThreads;
    if (is_of_search || given.role == PlanningRole::kSaved) refused.push_back(std::move(given));
  }
  if (const std::vector<std::string> names = names_of(refused); !names.empty()) {
    throw InputError({arguments.model, 0, 0},
                     "{} {} no effect: the model is written per device, so there is nothing to search or to lay out",
                     fmt::join(names, ", "), names.size() == 1 ? "has" : "have");
  }
  if (arguments.overlap) {
    throw InputError({arguments.model, 0, 0},
                     "--overlap has no effect: the model is written per device, so its file determines the order, and "
                     "communications always overlap with kernels that do not read their results");
  }
}

}  // namespace

int plan_local_model(const WrittenPerDevice& found, const PlanningArguments& arguments, const std::string& out,
                     bool json) {
  refuse_search(arguments);
  if (arguments.seed)
    throw InputError({arguments.model, 0, 0}, "--seed has no effect on what a model written per device costs");
  std::optional<Bytes> capacity;
  if (arguments.capacity) capacity = parse_capacity(*arguments.capacity);
  const LocalPlan plan = plan_locally(found.model, found.cluster, capacity);
  const std::string document = local_plan_json(plan);
  if (!out.empty()) {
    const std::string folder = out.ends_with('/') ? out : out + "/";
    PendingFiles pending;
    pending.add(folder + "plan.json", document);
    for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      pending.add(fmt::format("{}rank_{}/step_parallel_end.ir", folder, rank), local_ir(plan, rank));
    }
    pending.put_into_place();
  }
  print(json ? document : local_plan_text(plan, out));
  return plan.fits() ? kDone : kNoFeasiblePlan;
}

int validate_local_model(const WrittenPerDevice& found, const PlanningArguments& arguments,
                         const std::string& reference, int steps, bool json) {
  refuse_search(arguments);
  if (arguments.capacity) {
    throw InputError({arguments.model, 0, 0}, "--capacity has no effect on a comparison; `plan` reports what fits");
  }
  if (reference.empty()) {
    throw InputError(
        found.model->parallel.parallel_mode_place,
        "{} is written per device; --against FILE names the model in the view of all devices with which it "
        "is compared",
        found.model->name);
  }
  Model whole = read_model(reference, {});
  ModelOverrides overrides;  // sizes given for the model also apply to the reference, if it has them
  for (const auto& [name, size] : found.model->overrides.dims) {
    if (whole.dims.contains(name)) overrides.dims[name] = size;
  }
  if (!overrides.dims.empty()) whole = read_model(reference, overrides);
  LocalValidationOptions options;
  options.seed = arguments.seed.value_or(0);
  options.steps = steps;
  options.stop = interrupt_token();
  begin_phase("running both", PhaseEnd::kBySelf);
  const auto ranks = models_of_ranks(*found.model, found.cluster.num_devices());
  const LocalValidation validation = validate_against(ranks, whole, options);
  const LocalSubject subject{found.model->name, whole.name, ranks.size(), options.seed};
  print(json ? local_validation_json(subject, validation) : local_validation_text(subject, validation));
  return validation.agrees() ? kDone : kDifferenceFound;
}

int simulate_local_model(const WrittenPerDevice& found, const SimulateArguments& arguments) {
  refuse_search(arguments.planning);
  const SourcePlace place{arguments.planning.model, 0, 0};
  if (arguments.planning.capacity) {
    throw InputError(place, "--capacity has no effect on a simulation; `plan` reports what fits");
  }
  if (arguments.full_size) {
    throw InputError(place, "--full-size: a model written per device always runs at its own sizes");
  }
  if (arguments.integrated) {
    throw InputError(place,
                     "--integrated: a model written per device saves what each rank holds; `checkpoint merge` puts "
                     "whole tensors together");
  }
  const auto ranks = models_of_ranks(*found.model, found.cluster.num_devices());
  const std::unique_ptr<const RankGraphs> run = rank_graphs(ranks);
  const bool is_training = found.model->training.has_value();
  check_saving(arguments, is_training);
  LocalSimulationOptions options;
  options.seed = arguments.planning.seed.value_or(0);
  options.steps = arguments.steps;
  options.stop = interrupt_token();
  begin_with_checkpoint(arguments, is_training, options,
                        [&](Checkpoint& checkpoint) { return load_ranks(checkpoint, ranks, *run); });
  const std::int64_t last = options.first_step + options.steps;
  check_folders(arguments, options.first_step, last);
  options.after_step = [&](std::int64_t steps, const LocalExecutor& executor) {
    save_if_due(arguments, steps, last, [&](const std::string& folder) {
      save_ranks(folder, local_form(ranks, *run, steps, options.seed), *run, executor);
    });
  };
  begin_phase("simulating", PhaseEnd::kBySelf);
  const std::vector<LocalScalar> scalars = simulate_locally(ranks, *run, options);
  const LocalSubject subject{found.model->name, "", ranks.size(), options.seed, is_training};
  print(arguments.json ? local_simulation_json(subject, scalars, options.first_step)
                       : local_simulation_text(subject, scalars, options.first_step));
  return kDone;
}

CheckpointForm local_model_form(const WrittenPerDevice& found, const PlanningArguments& arguments,
                                const Checkpoint& checkpoint, std::vector<std::string>& notices) {
  refuse_search(arguments);
  if (arguments.seed || arguments.capacity) {
    throw InputError({arguments.model, 0, 0}, "{} has no effect on the layouts of a model written per device",
                     arguments.seed ? "--seed" : "--capacity");
  }
  const auto ranks = models_of_ranks(*found.model, found.cluster.num_devices());
  return form_for_ranks(checkpoint, ranks, *rank_graphs(ranks), notices);
}

}  // namespace shardplan
