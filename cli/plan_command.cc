#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "base/write_files.h"
#include "cli/command.h"
#include "cli/planning_options.h"
#include "report/infeasibility_analysis.h"
#include "report/ir_report.h"
#include "report/plan_file/plan_json.h"
#include "report/proof_report.h"
#include "report/strategy_table.h"
#include "report/summary.h"
#include "simulator/proof/prove.h"

namespace shardplan {
namespace {

struct PlanArguments {
  PlanningArguments planning;
  std::string out;
  std::int64_t rank = 0;
  bool validate = false;
  bool json = false;
  bool verbose = false;
};

std::string folder_text(const std::string& folder) { return folder.ends_with('/') ? folder : folder + "/"; }

int does_not_fit(const PlannedModel& planned, bool json) {
  Plan smallest = planned.planning->smallest(interrupt_token());
  smallest.options.level = planned.plan.options.level;
  smallest.objective = planned.plan.objective;
  const Infeasibility answer = analyse_infeasibility(smallest, interrupt_token());
  print(json ? infeasibility_json(answer) : infeasibility_report(answer, wants_colour()));
  return kNoFeasiblePlan;
}

ProofRecord record_of(const Proof& proof, std::uint64_t seed) {
  ProofRecord record;
  record.equal = proof.is_proven();
  record.seed = seed;
  for (const ShrunkSize& dim : proof.shrinking.dims) record.dims[dim.name] = dim.to;
  for (const PrecisionResult& precision : proof.validation.precisions) {
    record.checks.push_back({precision.precision == Precision::kFloat64 ? "f64" : "f32", precision.steps,
                             compared_text(precision), precision.largest, precision.allowed, precision.is_equal});
  }
  return record;
}

int run(const PlanArguments& arguments) {
  PlannedModel planned = plan_or_load(arguments.planning);
  if (!planned.is_found()) return does_not_fit(planned, arguments.json);
  Plan& plan = planned.plan;
  if (plan.baselines.empty()) plan.baselines.push_back(planned.planning->data_parallel());
  if (arguments.rank < 0 || arguments.rank >= plan.mesh.num_devices()) {
    throw InputError(SourcePlace{}, "--rank {}: there are ranks 0 to {}", arguments.rank, plan.mesh.num_devices() - 1);
  }

  std::optional<Proof> proof;
  if (arguments.validate) {
    ProofOptions options;
    options.validation.seed = arguments.planning.seed;
    options.validation.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options.validation.stop = interrupt_token();
    if (shows_progress()) options.validation.progress = notice;
    proof = prove(plan, options);
  }
  std::optional<ProofRecord> record;
  if (proof) record = record_of(*proof, arguments.planning.seed);

  SummaryOptions options;
  options.colour = wants_colour();
  options.verbose = arguments.verbose;
  if (proof) options.proof = proof_summary(*proof);
  const std::string document =
      arguments.json || !arguments.out.empty() ? plan_json(plan, record ? &*record : nullptr) : "";
  if (!arguments.out.empty()) {
    const std::vector<NamedText> files{{"plan.json", document},
                                       {"step_parallel_begin.ir", begin_report(plan)},
                                       {"step_parallel_end.ir", end_report(plan, arguments.rank)},
                                       {"strategies.txt", strategy_table(plan)}};
    write_files(arguments.out, files);
    options.out_folder = folder_text(arguments.out);
    for (const NamedText& file : files) options.written.push_back(file.name);
  }
  print(arguments.json ? document : summary_report(plan, options));
  return proof && !proof->is_proven() ? kDifferenceFound : kDone;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("plan", "Plan a model: layouts, collectives, time, memory, and how good it is");
  const auto arguments = std::make_shared<PlanArguments>();
  add_planning_options(*command, arguments->planning);
  command->add_option("--out", arguments->out,
                      "folder for plan.json, step_parallel_begin.ir, step_parallel_end.ir, strategies.txt");
  command->add_option("--rank", arguments->rank, "whose program step_parallel_end.ir shows (0)");
  command->add_flag("--validate", arguments->validate, "prove the plan on simulated devices");
  command->add_flag("--json", arguments->json, "one JSON document instead of the summary");
  command->add_flag("--verbose", arguments->verbose, "also options, assumed numbers and statistics of the search");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace shardplan
