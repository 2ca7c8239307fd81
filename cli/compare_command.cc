#include <deque>
#include <memory>

#include "cli/command.h"
#include "cli/planning_options.h"
#include "report/compare_report.h"

namespace shardplan {
namespace {

struct CompareArguments {
  PlanningArguments planning;
  bool all = false;
  bool json = false;
};

int run(const CompareArguments& arguments) {
  const std::unique_ptr<ModelPlanner> planning = make_planning(arguments.planning);
  std::deque<Plan> plans;
  std::vector<ComparedPlan> rows;
  const auto add = [&](std::string name, int level, const std::string& search) {
    plans.push_back(planning->plan(level, search, interrupt_token()));
    const Plan& plan = plans.back();
    if (plan.status == PlanStatus::kOptimal || plan.status == PlanStatus::kFeasible) {
      rows.push_back(compared(std::move(name), plan));
    } else {
      notice(fmt::format("{}: no plan fits", name));
    }
  };
  for (int level = 0; level <= 2; ++level) add(fmt::format("level {}", level), level, planning->options().search);
  add("propagation", planning->options().level, "propagation");
  rows.push_back(compared(planning->data_parallel()));
  rows.push_back(compared(planning->stand_alone()));
  print(arguments.json ? compare_json(rows) : compare_report(rows, {wants_colour(), arguments.all}));
  return kDone;
}

}  // namespace

void add_compare_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("compare", "Levels 0, 1, 2, propagation and the baselines side by side");
  const auto arguments = std::make_shared<CompareArguments>();
  add_planning_options(*command, arguments->planning);
  command->add_flag("--all", arguments->all, "every operator that differs, on a line of its own");
  command->add_flag("--json", arguments->json, "one JSON document");
  command->callback([arguments, &action] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace shardplan
