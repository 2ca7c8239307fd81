#include <fmt/format.h>

#include <memory>

#include "cli/command.h"
#include "cli/planning_options.h"
#include "program/strategy_table.h"
#include "program/summary.h"
#include "program/write_files.h"

namespace shardplan {
namespace {

struct PlanArguments {
  PlanningArguments planning;
  std::string out;
  bool verbose = false;
};

int run(const PlanArguments& arguments) {
  const std::unique_ptr<Planning> planning = make_planning(arguments.planning);
  Plan plan = planning->plan(planning->options().level, planning->options().search, interrupt_token());
  if (plan.status != PlanStatus::kOptimal && plan.status != PlanStatus::kFeasible) {
    notice("no plan fits");
    return kNoFeasiblePlan;
  }
  plan.baselines.push_back(planning->data_parallel());
  SummaryOptions options;
  options.colour = wants_colour();
  options.verbose = arguments.verbose;
  if (!arguments.out.empty()) {
    const std::vector<NamedText> files{{"strategies.txt", strategy_table(plan)}};
    write_files(arguments.out, files);
    options.out_folder = arguments.out;
    for (const NamedText& file : files) options.written.push_back(file.name);
  }
  print(summary_report(plan, options));
  return kDone;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("plan", "Plan a model: layouts, collectives, time, memory, and how good it is");
  const auto arguments = std::make_shared<PlanArguments>();
  add_planning_options(*command, arguments->planning);
  command->add_option("--out", arguments->out,
                      "folder for plan.json, step_parallel_begin.ir, step_parallel_end.ir, strategies.txt");
  command->add_flag("--verbose", arguments->verbose, "also options, assumed numbers and statistics of the search");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace shardplan
