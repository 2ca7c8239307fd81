// `plan` computes everything that it shows, writes all files together, and prints last, so that a failure leaves no part
// of its output. What it has in common with other commands that plan is in planning_options.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "base/parse_number.h"
#include "base/until_exit.h"
#include "base/write_files.h"
#include "cli/commands/commands.h"
#include "cli/commands/local_model_command.h"
#include "cli/commands/planning_options.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "report/html/html_report.h"
#include "report/plan/dot.h"
#include "report/plan/infeasibility_report.h"
#include "report/plan/ir_report.h"
#include "report/plan/summary.h"
#include "report/plan/trace.h"
#include "report/plan_file/plan_json.h"
#include "report/proof_report.h"
#include "report/text/strategy_table.h"
#include "simulator/execute/reference.h"
#include "simulator/proof/prove.h"

namespace shardplan {
namespace {

struct PlanArguments {
  PlanningArguments planning;
  std::string out;
  std::string html;                 // a file; empty: none
  int alternatives = 0;             // number of decisions with alternatives on the page
  std::optional<std::string> rank;  // a number or "all"
  std::string trace;
  std::string dot;
  bool validate = false;
  bool json = false;
  bool verbose = false;
};

std::string folder_text(const std::string& folder) { return folder.ends_with('/') ? folder : folder + "/"; }

std::string rank_ir(std::int64_t rank) { return fmt::format("rank_{}/step_parallel_end.ir", rank); }

/// The requested rank, or all.
std::vector<std::int64_t> ranks_of(const std::string& text, std::int64_t num_devices) {
  std::vector<std::int64_t> ranks;
  const auto number = parse_number<std::int64_t>(text);
  if (text != "all" && (!number || *number < 0 || *number >= num_devices)) {
    throw InputError(SourcePlace{}, "--rank {}: there are ranks 0 to {}, or all", text, num_devices - 1);
  }
  if (number) return {*number};
  for (std::int64_t rank = 0; rank < num_devices; ++rank) ranks.push_back(rank);
  return ranks;
}

int does_not_fit(const PreparedPlan& planned, bool json) {
  begin_phase("looking for the plan with the least memory", PhaseEnd::kAtOnce);
  Plan smallest = planned.planning->smallest(interrupt_token());
  if (smallest.strategies.empty()) {
    notice(
        "no plan, not even the one with the least memory, was found before a limit ended the search; raise "
        "--time-limit");
    return kNoFeasiblePlan;
  }
  if (planned.plan.mindspore && smallest.fits()) {
    notice(
        "no plan with the forward strategies of MindSpore's cost model fits; use --costs cluster to find one that "
        "does");
    return kNoFeasiblePlan;
  }
  begin_phase("analysing why no plan fits", PhaseEnd::kBySelf);
  smallest.options.level = planned.plan.options.level;
  const Infeasibility answer = analyse_infeasibility(smallest, interrupt_token());
  print(json ? infeasibility_json(answer) : infeasibility_report(answer, wants_colour()));
  return kNoFeasiblePlan;
}

/// Refuses options about files that are not written.
void check_written(const PlanArguments& arguments) {
  if (arguments.alternatives > 0 && arguments.html.empty()) {
    throw InputError(SourcePlace{}, "--alternatives {}: they are shown on the page written by --html FILE",
                     arguments.alternatives);
  }
  if (arguments.rank && arguments.out.empty()) {
    throw InputError(SourcePlace{}, "--rank {}: the programs of ranks are written by --out FOLDER", *arguments.rank);
  }
}

/// The decisions on the page, with a notice if the search of their alternatives was stopped.
std::vector<ExplainedDecision> page_decisions(const PlanArguments& arguments, const PreparedPlan& planned) {
  if (arguments.alternatives == 0) return {};
  begin_phase("searching alternatives", PhaseEnd::kBySelf);
  std::vector<ExplainedDecision> decisions =
      explain_costliest(*planned.planning, planned.plan, static_cast<std::size_t>(arguments.alternatives),
                        limited_token(arguments.planning.time_limit.value_or(0)), progress_sink());
  const auto is_incomplete = [](const ExplainedDecision& one) { return !one.explanation.is_complete; };
  const auto count = std::count_if(decisions.begin(), decisions.end(), is_incomplete);
  if (count > 0) {
    say_notices({fmt::format("stopped early: on the page alternatives are missing for {} of {} decisions", count,
                             decisions.size())});
  }
  return decisions;
}

int plan_model(PlanArguments arguments) {
  arguments.planning.proves = arguments.validate;
  arguments.planning.shows_data_parallel = true;
  check_written(arguments);
  PendingFiles pending;  // all are written, or none
  PreparedPlan& planned = until_exit(plan_or_load(arguments.planning, &pending));
  if (!planned.is_found()) return does_not_fit(planned, arguments.json);
  Plan& plan = planned.plan;
  const int workers = plan.program.workers;
  if (plan.baselines.empty()) {
    plan.baselines.push_back(workers > 1 ? planned.planning->one_worker(plan) : planned.planning->data_parallel());
  }
  const std::vector<std::int64_t> ranks = ranks_of(arguments.rank.value_or("0"), workers * plan.mesh.num_devices());

  std::optional<Proof> proof;
  if (arguments.validate) {
    ProofOptions options;
    options.validation.seed = arguments.planning.seed.value_or(0);
    options.validation.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options.validation.stop = interrupt_token();
    if (shows_progress()) options.validation.progress = notice;
    begin_phase("proving the plan", PhaseEnd::kBySelf);
    try {
      proof = prove(plan, options);
    } catch (const Stopped&) {
      say_notices({"stopped early: nothing is proven"});  // the plan is printed and written all the same
    }
  }
  const std::vector<ExplainedDecision> decisions = page_decisions(arguments, planned);
  std::optional<ProofRecord> record = planned.proof;
  const bool was_run = proof && proof->shrinking.refusal.empty() && proof->validation.without_kernel.empty();
  if (was_run) record = proof_record(*proof, arguments.planning.seed.value_or(0));

  SummaryOptions options;
  options.colour = wants_colour();
  options.verbose = arguments.verbose;
  if (planned.proof) options.proof = earlier_verdict(*planned.proof);
  if (proof) options.proof = proof_verdict(*proof);
  const std::string document =
      arguments.json || !arguments.out.empty() ? plan_json(plan, record ? &*record : nullptr) : "";
  if (!arguments.out.empty()) {
    std::vector<NamedText> files{{"plan.json", document},
                                 {"step_parallel_begin.ir", begin_report(plan)},
                                 {"step_parallel_end.ir", end_report(plan, ranks.front())},
                                 {"strategies.txt", strategy_table(plan)}};
    for (int worker = 0; workers > 1 && worker < workers; ++worker) {
      files.push_back({fmt::format("worker_{}.ir", worker), worker_report(plan, worker)});
    }
    options.out_folder = folder_text(arguments.out);
    for (const NamedText& file : files) {
      pending.add(options.out_folder + file.name, file.text);
      options.written.push_back(file.name);
    }
    if (ranks.size() > 1) options.written.push_back("rank_0/step_parallel_end.ir to " + rank_ir(ranks.back()));
    for (std::size_t i = 0; i < ranks.size() && ranks.size() > 1; ++i) {
      pending.add(options.out_folder + rank_ir(ranks[i]), end_report(plan, ranks[i]));
    }
  }
  if (!arguments.trace.empty()) pending.add(arguments.trace, chrome_trace(plan));
  if (!arguments.dot.empty()) pending.add(arguments.dot, dot_graph(plan));
  if (!arguments.html.empty()) {
    std::vector<ComparedPlan> rows{compared("plan", plan)};
    for (const Baseline& baseline : plan.baselines) rows.push_back(compared(baseline));
    SummaryOptions plain = options;
    plain.colour = false;
    pending.add(arguments.html, html_report({{"plan", &plan, decisions}}, rows, summary_report(plan, plain)));
  }
  pending.put_into_place();
  print(arguments.json ? document : summary_report(plan, options));
  return proof && !proof->is_proven() ? kDifferenceFound : kDone;
}

int run(const PlanArguments& arguments) {
  try {
    return plan_model(arguments);
  } catch (const WrittenPerDevice& found) {
    const bool asks_for_pages = arguments.validate || arguments.alternatives > 0 || !arguments.html.empty() ||
                                !arguments.trace.empty() || !arguments.dot.empty() || arguments.verbose;
    if (asks_for_pages) {
      throw InputError(
          {arguments.planning.model, 0, 0},
          "the model is written per device: --html, --trace, --dot, --alternatives, --verbose and --validate are "
          "for plans; `validate --against FILE` runs it beside a model in the view of all devices");
    }
    if (arguments.rank && *arguments.rank != "all") {
      throw InputError({arguments.planning.model, 0, 0},
                       "--rank {}: for a model written per device --out always writes the files of all ranks",
                       *arguments.rank);
    }
    return plan_local_model(found, arguments.planning, arguments.out, arguments.json);
  }
}

}  // namespace

Command plan_command() {
  const auto arguments = std::make_shared<PlanArguments>();
  Command command;
  command.name = "plan";
  command.topic = "Plan";
  command.summary = "Plan a model: layouts, collectives, time, memory, and the gap to the optimum";
  command.examples = {
      {"configs/gpt2-small.yaml", "on the cluster that the file names"},
      {"configs/lenet.yaml --validate", "also prove it on simulated devices"},
      {"configs/mlp.yaml --out out --rank all", "also write every rank's program to out/rank_R/"},
      {"configs/lenet.yaml --out out", "also write plan.json, both IR files and strategies.txt to out/"},
      {"configs/mlp.yaml --html plan.html", "also as a web page"},
      {"configs/llama-7b.yaml --cluster dgx-h100x8 --level 2", "the fastest step on eight nodes of eight H100"},
      {"configs/mlp.yaml --capacity 1MiB", "too little memory: what is missing, and what would help", kNoFeasiblePlan},
      {"configs/mlp.yaml --dim B=64 --set 'layer1.weight=[{}, {mp}]'",
       "with another size and one layout of your choice"},
  };
  command.options = planning_options(arguments->planning);
  command.options.insert(command.options.begin(), {"", {model_argument(arguments->planning)}});
  command.options.push_back(
      {"Output",
       {option("--out", "FOLDER", &arguments->out,
               "write plan.json, step_parallel_begin.ir, step_parallel_end.ir and strategies.txt into this folder")
            .completed_by(Completion::kFolder)
            .writing({"plan.json", "step_parallel_begin.ir", "step_parallel_end.ir", "strategies.txt"}),
        option("--trace", "FILE", &arguments->trace,
               "write the step's timeline for Perfetto (Chrome's trace format) into this file")
            .completed_by(Completion::kFile)
            .writing(),
        html_option(arguments->html),
        option("--dot", "FILE", &arguments->dot,
               "write the forward operators and the redistributions between them for Graphviz")
            .completed_by(Completion::kFile)
            .writing(),
        option("--alternatives", "N", &arguments->alternatives,
               "add the alternatives of the N most expensive decisions to the page; each takes several searches",
               from_to(0, 1000)),
        option("--rank", "RANK", &arguments->rank,
               "the device whose program step_parallel_end.ir shows; all: also a folder rank_R for each device")
            .with_default("0"),
        flag("--validate", arguments->validate, "prove the plan on simulated devices"),
        flag("--json", arguments->json, "print plan.json instead of the summary"),
        flag("--verbose", arguments->verbose,
             "also print the options, the cluster's assumed numbers, the search's statistics, the critical path by "
             "class, and the buckets")}});
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
