#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/json_text.h"
#include "cli/commands/commands.h"
#include "cli/commands/job_arguments.h"
#include "cli/commands/planning_options.h"
#include "cli/commands/proof_subject.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "planner/model_planner.h"
#include "report/plan_file/plan_json.h"
#include "report/plan_file/sha256.h"
#include "report/proof_report.h"
#include "simulator/proof/prove.h"
#include "simulator/workers/run_worker.h"

namespace shardplan {
namespace {

struct WorkerArguments {
  PlanningArguments planning;
  JobArguments job;
  std::optional<int> rank;
  std::optional<std::string> address;
  int steps = 3;
  int batches = 1;
};

void check(const WorkerArguments& arguments, std::optional<int> rank, const Plan& plan, const JobOptions& job) {
  const SourcePlace model{arguments.planning.model, 0, 0};
  if (plan.program.workers == 1) {
    throw InputError(model, "no operator has a place, so there is nothing to distribute among workers");
  }
  if (plan.program.workers != job.workers) {
    throw InputError(model, "the plan is for {} workers, but MS_WORKER_NUM or --workers says {}", plan.program.workers,
                     job.workers);
  }
  if (rank && *rank >= job.workers) {
    throw InputError(SourcePlace{}, "rank {}: the workers are 0 to {}", *rank, job.workers - 1);
  }
  if (scalar_outputs(*plan.graph).empty()) {
    throw InputError(model, "nothing to report: the model has no 'loss' and no scalar output");
  }
  const std::vector<std::string> missing = operators_without_kernel(*plan.graph);
  if (!missing.empty()) throw InputError(model, "no local computation is known for {}", missing.front());
  const Executable whole = make_executable(plan, false, ProofOptions().most_devices);
  if (!whole.shrinking.refusal.empty()) throw InputError(model, "{}", whole.shrinking.refusal);
}

/// The same model without training, on the same devices, for running the trained weights.
Plan inference_plan(const Plan& trained) {
  auto model = std::make_shared<Model>(*trained.model);
  model->training.reset();
  PlanOptions options = trained.options;
  options.strategy_file = "";  // it may name tensors that only training has
  return ModelPlanner(model, trained.cluster, options).plan(options.level, options.search, interrupt_token());
}

/// Covers everything that affects what a worker runs, except the places of its files.
std::string fingerprint_of(const WorkerArguments& arguments, const Plan& plan) {
  Json document = Json::parse(plan_json(plan));
  document["model"].erase("file");
  return sha256(fmt::format("{} {} {} {}", document.dump(), arguments.steps, arguments.batches,
                            arguments.planning.seed.value_or(0)));
}

/// The scheduler's machine unless an address is given.
std::string address_of(const WorkerArguments& arguments, const JobOptions& job) {
  if (arguments.address) return *arguments.address;
  if (job.host.starts_with("127.") || job.host == "localhost" || job.host == "::1") return job.host;
  throw InputError(SourcePlace{},
                   "the scheduler is at {}, so --address must be an address at which others reach this machine",
                   job.host);
}

/// One of the two runs: training, or inference on new batches.
struct Part {
  Plan plan;
  int steps = 0;
  std::uint64_t first_batch = 0;
  std::vector<SimulatedScalar> scalars = {};  // worker 0's
};

/// Training, if the model has it, then batches with the resulting weights.
std::vector<Part> parts_of(const WorkerArguments& arguments, const Plan& plan) {
  std::vector<Part> parts;
  const bool is_trained = plan.graph->is_training();
  if (is_trained) parts.push_back({plan, arguments.steps});
  const auto seen = is_trained ? static_cast<std::uint64_t>(plan.graph->micro_batches()) : 0;
  if (arguments.batches > 0) parts.push_back({is_trained ? inference_plan(plan) : plan, arguments.batches, seen});
  return parts;
}

int run(const WorkerArguments& arguments) {
  const JobOptions job = job_of(arguments.job, "MS_WORKER");
  const std::optional<int> rank = arguments.rank ? arguments.rank : rank_of_environment();
  const PreparedPlan planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) {
    notice("no plan fits; see 'shardplan plan'");
    return kNoFeasiblePlan;
  }
  check(arguments, rank, planned.plan, job);
  std::vector<Part> parts = parts_of(arguments, planned.plan);
  begin_phase("waiting for the other workers", PhaseEnd::kBySelf);
  WorkerIdentity identity{rank, address_of(arguments, job), fingerprint_of(arguments, planned.plan)};
  for (const Part& part : parts)
    identity.most_bytes = std::max(identity.most_bytes, largest_message(part.plan.program));
  WorkerLink link(job, identity);
  begin_phase(fmt::format("worker {} of {}", link.rank(), link.workers()), PhaseEnd::kBySelf);
  WorkerRunOptions options;
  options.seed = arguments.planning.seed.value_or(0);
  options.threads = threads_of(arguments.planning);
  options.stop = interrupt_token();
  try {
    StoredTensors stored;
    for (Part& part : parts) {
      options.steps = part.steps;
      options.first_batch = part.first_batch;
      part.scalars = run_worker(part.plan.program, *part.plan.graph, link, stored, options);
    }
  } catch (const InputError& error) {
    link.fail(error.what());
    throw;
  } catch (const Stopped&) {
    link.fail("it was interrupted");
    throw;
  }
  link.finish();
  if (link.rank() != 0) return kDone;
  std::string text;
  StoredTensors stored;
  for (Part& part : parts) {
    options.steps = part.steps;
    options.first_batch = part.first_batch;
    run_one_device(*part.plan.graph, stored, options, part.scalars);
    Shrinking shrinking;
    shrinking.mesh = part.plan.mesh;
    text += text.empty() ? "" : "\n";
    text += simulation_text(subject_of(part.plan, arguments.planning), shrinking, part.scalars, 0);
  }
  print(text);
  return kDone;
}

}  // namespace

Command worker_command() {
  const auto arguments = std::make_shared<WorkerArguments>();
  Command command;
  command.name = "worker";
  command.topic = "Prove a plan";
  command.summary = "Run one worker of a model with 'place' as a process: training, then inference";
  command.description =
      "It finds the others through 'shardplan scheduler', which MindSpore's variables MS_SCHED_HOST and MS_SCHED_PORT "
      "name, trains its part of the model at its own sizes, and then runs new batches with the trained weights. Worker "
      "0 "
      "prints the loss beside that of one device. If one of them is missing, fails or is killed, all end with an "
      "error.";
  command.examples = {{"configs/lenet-place.yaml --port 1 --workers 5 --steps 3 --timeout 0.1",
                       "one of five workers, without a scheduler", kBadInput}};
  arguments->planning.proves = true;
  command.options = planning_options(arguments->planning);
  command.options.insert(command.options.begin(), {"", {model_argument(arguments->planning)}});
  command.options.push_back(job_options(arguments->job));
  command.options.push_back(
      {"The run",
       {option("--rank", "R", &arguments->rank, "rank of this worker", from_to(0, kMostWorkers - 1))
            .with_default("MS_NODE_ID, else the lowest free one"),
        option("--address", "ADDRESS", &arguments->address, "address at which others reach this machine")
            .with_default("that of a scheduler on this machine"),
        option("--steps", "N", &arguments->steps, "training steps", from_to(1, 100000)),
        option("--batches", "N", &arguments->batches, "new batches for the trained model", from_to(0, 100000))}});
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
